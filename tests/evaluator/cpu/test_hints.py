"""Which accesses go by a hint that calls neighbours what is none."""

from __future__ import annotations

import numpy as np
import pytest

from rlkernel.evaluator.cpu.hints import FalseNeighbours
from rlkernel.evaluator.cpu.machine import OutOfBounds
from rlkernel.evaluator.cpu.numbers import Array

BEGIN, FLOAT = 1 << 20, 4
ROWS = np.arange(8)[:, None]


def columns(count: int) -> Array:
    """The columns of the last block of 16 of a row of so many, which begin anew at its end."""
    last = (count - 1) // 16 * 16
    return np.arange(last, last + 16) % count


def addresses(offsets: Array) -> Array:
    return (BEGIN + offsets * FLOAT).astype(np.uint64)


def judge(said: Array, touched: Array, mask: Array | None = None) -> None:
    everything = np.ones(touched.shape, dtype=bool)
    FalseNeighbours(said, 16).check(touched, everything if mask is None else np.broadcast_to(mask, touched.shape), FLOAT)


def test_rows_of_a_matrix_are_no_neighbours_in_memory() -> None:
    judge(columns(21), addresses(columns(21)[:, None] * 64 + np.arange(8)[None, :]))


def test_nothing_moves_together_where_rows_begin_at_any_element() -> None:
    judge(columns(21), addresses(ROWS * 21 + columns(21)))


def test_elements_of_an_aligned_row_move_together() -> None:
    with pytest.raises(OutOfBounds, match=r"^tl.max_contiguous says 16, which does not hold at full shape: "):
        judge(columns(21), addresses(columns(21)))
    with pytest.raises(OutOfBounds):
        judge(columns(21), addresses(ROWS * 32 + columns(21)))


def test_two_move_together_where_four_are_not_aligned() -> None:
    judge(columns(22), addresses(ROWS * 22 + columns(22)))  # 22 columns begin anew between two pairs
    with pytest.raises(OutOfBounds):
        judge(columns(22), addresses(ROWS * 24 + columns(22)))


def test_elements_outside_the_mask_move_nothing() -> None:
    here = np.arange(16, 32)
    judge(columns(20), addresses(np.where(here < 20, here, 0)), here < 20)
    with pytest.raises(OutOfBounds):
        judge(np.where(here < 20, here, 0), addresses(np.where(here < 20, here, 0)))


def test_hints_of_one_kind_judge_alike() -> None:
    """Those of other turns of a loop are of one kind where offsets begin anew at the same places of a block."""
    assert FalseNeighbours(columns(21), 16).kind == FalseNeighbours(columns(37), 16).kind
    assert FalseNeighbours(columns(21), 16).kind != FalseNeighbours(columns(22), 16).kind
    assert FalseNeighbours(columns(21), 16).kind != FalseNeighbours(columns(21), 4).kind
