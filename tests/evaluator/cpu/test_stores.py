"""How much of an output is written, by kernels and by operators, where a forward is priced."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.cpu.pricing import Stores
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.program.schema import Op

FILL = Op("aten.fill_.Scalar", (), {}, (1,))
EMPTY = Op("aten.empty.memory_format", (), {}, (1,))


def meta(*shape: int) -> torch.Tensor:
    return torch.empty(*shape, device="meta")


def stored(tensor: torch.Tensor, size: float) -> Counts:
    """A launch that writes so many bytes of a tensor."""
    return Counts(stored={0: size}, storages=[tensor.untyped_storage()._cdata])


@given(st.integers(0, 100), st.integers(0, 100))
def test_what_operators_write_counts_and_no_more(rows: int, by_kernel: int) -> None:
    out, stores = meta(100, 8), Stores()
    size = out.numel() * 4
    stores.of_operator(EMPTY, [], [out], works=False)
    stores.of_operator(FILL, [out[:rows]], [out[:rows]], works=True)
    stores.of_kernel(stored(out, by_kernel * 32.0))
    assert stores.too_few(out, size) == (rows + by_kernel < 100)  # 99 of 100 rows are too few where whole blocks are stored


def test_an_output_that_no_kernel_writes_is_not_looked_at() -> None:
    out, stores = meta(100, 8), Stores()
    stores.of_operator(FILL, [out[:1]], [out[:1]], works=True)
    assert not stores.too_few(out, 3200)


def test_new_memory_begins_anew() -> None:
    out, stores = meta(100, 8), Stores()
    stores.of_kernel(stored(out, 3200.0))
    stores.of_operator(EMPTY, [], [out], works=False)  # as where what was there is given up, and its identity is given again
    stores.of_kernel(stored(out, 1600.0))
    assert stores.too_few(out, 3200)


def test_what_chance_may_have_left_out_is_not_too_little_but_perhaps_so() -> None:
    out, stores = meta(100, 8), Stores()
    stores.of_kernel(replace(stored(out, 2880.0), left_out={0: 320.0}, by_chance={0: 320.0}))
    assert not stores.too_few(out, 3200) and stores.perhaps_too_few(out, 3200)
    stores.of_kernel(stored(out, 600.0))
    assert not stores.perhaps_too_few(out, 3200), "more than chance may have added"
    whole = Stores()
    whole.of_kernel(stored(out, 3200.0))
    assert not whole.perhaps_too_few(out, 3200)
