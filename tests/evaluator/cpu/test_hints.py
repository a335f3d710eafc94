"""Which accesses go by a hint that calls neighbours what is none."""

from __future__ import annotations

import numpy as np

from rlkernel.evaluator.cpu.neighbours import FalseNeighbours, GoneBy, Hint, Place, group_of
from rlkernel.evaluator.cpu.numbers import Array

BEGIN, FLOAT = 1 << 20, 4
ROWS = np.arange(8)[:, None]


def columns(count: int) -> Array:
    """The columns of the last block of 16 of a row of so many, which begin anew at its end."""
    last = (count - 1) // 16 * 16
    return np.arange(last, last + 16) % count


def addresses(offsets: Array) -> Array:
    return (BEGIN + offsets * FLOAT).astype(np.uint64)


def elsewhere(said: Array, touched: Array, mask: Array | None = None) -> list[int]:
    """The elements, counted from the begin, that an access moves in place of those that it is given."""
    inside = np.broadcast_to(np.True_ if mask is None else mask, touched.shape)
    found = GoneBy().note(("kernel", 1), FalseNeighbours(said, 16), touched, inside, FLOAT)
    return sorted((found.astype(np.int64) - BEGIN).tolist())


def by_kind(place: Place, hint: FalseNeighbours) -> dict[Hint, FalseNeighbours]:
    return {(place, hint.kind): hint}


def test_rows_of_a_matrix_are_no_neighbours_in_memory() -> None:
    assert elsewhere(columns(21), addresses(columns(21)[:, None] * 64 + np.arange(8)[None, :])) == []


def test_nothing_moves_together_where_rows_begin_at_any_element() -> None:
    assert elsewhere(columns(21), addresses(ROWS * 21 + columns(21))) == []


def test_elements_of_an_aligned_row_move_together() -> None:
    """Of the columns 16 to 20 and 0 to 10 the groups are 16 to 19, then 20 with 0 to 2, which is read as 20 to 23."""
    assert elsewhere(columns(21), addresses(columns(21))) == [FLOAT * place for place in (21, 22, 23)]
    found = elsewhere(columns(21), addresses(ROWS * 32 + columns(21)))
    assert found == sorted(FLOAT * (32 * row + place) for row in range(8) for place in (21, 22, 23))


def test_two_move_together_where_four_are_not_aligned() -> None:
    assert elsewhere(columns(22), addresses(ROWS * 22 + columns(22))) == []  # 22 columns begin anew between two pairs
    found = elsewhere(columns(22), addresses(ROWS * 24 + columns(22)))
    assert found == sorted(FLOAT * (24 * row + place) for row in range(8) for place in (22, 23))


def test_elements_outside_the_mask_move_nothing() -> None:
    here = np.arange(16, 32)
    assert elsewhere(columns(20), addresses(np.where(here < 20, here, 0)), here < 20) == []
    found = elsewhere(np.where(here < 20, here, 0), addresses(np.where(here < 20, here, 0)))
    assert found == 3 * [FLOAT] + 3 * [2 * FLOAT] + 3 * [3 * FLOAT]


def test_with_data_lanes_count_that_the_hint_puts_elsewhere_whatever_is_aligned() -> None:
    gone, place = GoneBy(), ("kernel", 7)
    aligned, odd = addresses(columns(21)), addresses(ROWS * 21 + columns(21))
    inside = np.ones(odd.shape, dtype=bool)
    gone.note(place, FalseNeighbours(columns(21), 16), aligned, inside[0], FLOAT)
    assert gone.unmet() == "kernel kernel: tl.max_contiguous says 16, which does not hold at full shape: accesses go elsewhere"
    true = by_kind(place, FalseNeighbours(np.arange(16), 16))
    assert not gone.strays(true, addresses(np.arange(16)), inside[0], FLOAT).any() and gone.unmet()
    found = gone.strays(by_kind(place, FalseNeighbours(columns(21), 16)), odd, inside, FLOAT)
    assert [np.flatnonzero(row).tolist() for row in found] == 8 * [[5, 6, 7]] and not gone.unmet()


def test_hints_of_one_kind_judge_alike() -> None:
    """Those of other turns of a loop are of one kind where offsets begin anew at the same places of a block."""
    assert FalseNeighbours(columns(21), 16).kind == FalseNeighbours(columns(37), 16).kind
    assert FalseNeighbours(columns(21), 16).kind != FalseNeighbours(columns(22), 16).kind
    assert FalseNeighbours(columns(21), 16).kind != FalseNeighbours(columns(21), 4).kind


def test_one_access_moves_more_of_what_is_narrower() -> None:
    """16 bytes: 4 elements of float32, 8 of half precision, 16 of 8 bits."""
    assert [group_of(16, 64, width) for width in (1, 2, 4, 8)] == [16, 8, 4, 4]
    assert group_of(8, 64, 1) == 8 and group_of(16, 2, 1) == 2
    hint = FalseNeighbours(np.arange(16) // 4 * 8 + np.arange(16) % 4, 8)  # every other four
    everywhere = np.ones(16, dtype=bool)
    for width, stray in ((4, False), (2, True)):
        given = (width * hint.offsets).astype(np.uint64)
        assert bool(np.any(hint.claimed(given, everywhere, width) != given)) == stray
