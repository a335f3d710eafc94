"""What tensors look like to whoever judges them."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.program.tensors import extent, lent


def test_what_lies_in_an_inputs_memory_is_lent() -> None:
    whole = torch.zeros(4, 6)
    assert lent(whole.t(), [whole]) and lent(whole[3, 5:], [torch.zeros(2), whole]) and lent(whole, [whole[0]])
    assert not lent(whole.clone(), [whole]) and not lent(whole[:0], [whole]) and not lent(whole, [])
    # Neighbours in one memory: rows 0 and 1 end where rows 2 and 3 begin.
    assert not lent(whole[:2], [whole[2:]])


@pytest.mark.parametrize(
    ("size", "stride", "expected"),
    [((2, 3), (3, 1), 6), ((2, 3), (10, 1), 13), ((3, 2), (1, 3), 6), ((4,), (0,), 1), ((0, 5), (5, 1), 0), ((), (), 1)],
)
def test_extent(size: tuple[int, ...], stride: tuple[int, ...], expected: int) -> None:
    assert extent(size, stride) == expected
