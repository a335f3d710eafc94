"""PyTorch's own kernels by hand, on the h200 profile: 6.7e7 operations/us, 4.3e6 bytes/us, 132 processors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs.roofline import operator_us
from rlkernel.evaluator.judging.costs.torch_kernels import PER_ADDRESS, PER_EXPONENTIAL, slow_us
from rlkernel.evaluator.program.schema import Op
from rlkernel.types import Precision


def us(op: str, read: tuple[tuple[int, ...], ...], made: tuple[int, ...], *rest: Any) -> float:
    tensors = [torch.empty(shape, device="meta") for shape in read]
    step = Op(op, (*tensors, *rest), {}, (1,))
    return slow_us(step, tensors, [torch.empty(made, device="meta")], H200)


def test_operands_of_several_shapes_cost_a_division_for_each_element() -> None:
    rows = (4096, 8192)
    each = 4096 * 8192 / 6.7e7
    assert us("aten.add.Tensor", (rows, (8192,)), rows) == us("aten.div.Tensor", (rows, (4096, 1)), rows)
    assert us("aten.add.Tensor", (rows, (8192,)), rows) == pytest.approx(PER_ADDRESS * each)
    assert us("aten.add.Tensor", (rows, rows), rows) == us("aten.add.Tensor", (rows, (1,)), rows) == 0.0


def test_a_softmax_of_rows_that_no_warp_holds() -> None:
    each = 4096 * 2048 / 6.7e7
    assert us("aten._softmax.default", ((4096, 2048),), (4096, 2048), -1, False) == pytest.approx(PER_EXPONENTIAL * each)
    assert us("aten._softmax.default", ((8192, 1024),), (8192, 1024), -1, False) == 0.0


@pytest.mark.parametrize(
    ("rows", "length", "steps", "step_us", "measured"),
    [
        (1024, 16384, 128, 1.38, 188),  # 2^((9 + 14 - 10) / 2) = 64 threads for a row, 8 rows in a block: 128 blocks
        (2048, 16384, 128, 1.71, 221),  # 256 blocks, two on a processor
        (16384, 2048, 64, 2.37, 148),  # 16 threads, 32 rows: 512 blocks, four on a processor
        (32768, 1536, 2 * 48, 2.37, 215),  # 1,024 blocks, of which 528 run at once: twice 48 steps
    ],
)
def test_a_scan_takes_its_steps(rows: int, length: int, steps: int, step_us: float, measured: float) -> None:
    """Those that an H200 has measured, to within 15 %."""
    found = us("aten.cumsum.default", ((rows, length),), (rows, length), 1)
    assert found == pytest.approx(steps * step_us) == pytest.approx(measured, rel=0.15)
    assert us("aten.cumsum.default", ((rows, length),), (rows, length), 0) == 0.0


def test_a_log_sum_exp_is_nine_kernels() -> None:
    """Of 128 rows of 65,536 it took 86 us on an H200: 9 launches, 22 us for addresses, and four more passes of 7.8 us."""
    x, y = torch.empty(128, 65536, device="meta"), torch.empty(128, device="meta")
    step = Op("aten.logsumexp.default", (x, [-1]), {}, (1,))
    found = operator_us(step, [x], [y], H200, Precision.STRICT)
    assert found == pytest.approx(9 * 2.5 + PER_ADDRESS * 2**23 / 6.7e7 + 4 * 2**25 / 4.3e6)
    assert found == pytest.approx(86, rel=0.15)


@pytest.mark.parametrize(("words", "found"), [(64, 2**22 / 64 / 2000), (2**20, 64 * 2**22 / 1.2e7)])
def test_a_scatter_that_adds_waits_for_words_or_for_the_cache(words: int, found: float) -> None:
    whole, numbers, ones = (torch.empty(size, dtype=torch.int64, device="meta") for size in (words, 2**22, 2**22))
    step = Op("aten.scatter_add_.default", (whole, 0, numbers, ones), {}, (1,))
    assert slow_us(step, [whole, numbers, ones], [whole], H200) == pytest.approx(found)


def test_rows_that_are_added_take_their_bytes() -> None:
    whole, numbers, rows = (
        torch.empty(64, 128, device="meta"),
        torch.empty(65536, device="meta"),
        torch.empty(65536, 128, device="meta"),
    )
    step = Op("aten.index_add.default", (whole, 0, numbers, rows), {}, (1,))
    assert slow_us(step, [whole, numbers, rows], [whole], H200) == pytest.approx(2 * 4 * 65536 * 128 / 1.2e7)
