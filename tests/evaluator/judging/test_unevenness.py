"""Inputs that differ in size from place to place: a part of them does not stand for all."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.unevenness import drawn_one_by_one, factors, uneven

ROWS, COLS = 4, 4096


def test_the_factors_of_a_place_are_those_of_its_bits() -> None:
    found = factors(5, torch.device("cpu"))  # three bits: 0.875 or 1.125 for each
    assert found.tolist() == [0.875**3, 0.875**2 * 1.125, 0.875**2 * 1.125, 0.875 * 1.125**2, 0.875**2 * 1.125]


@pytest.mark.parametrize(
    "part",
    [
        slice(0, COLS // 2),
        slice(COLS // 2, None),
        slice(0, None, 2),
        slice(1, None, 2),
        slice(0, COLS * 7 // 8),
        slice(0, None, 16),
    ],
)
def test_no_part_of_a_row_has_its_root_mean_square(part: slice) -> None:
    """bfloat16 is allowed 2 %; of even normal numbers, half of a row misses by 1.1 % (1 / sqrt(2 * 4096))."""
    torch.manual_seed(0)
    row = uneven(torch.randn(ROWS, COLS))
    whole, some = row.square().mean(-1).sqrt(), row[:, part].square().mean(-1).sqrt()
    assert bool(((some / whole - 1).abs() > 0.03).all())


def test_symmetric_and_definite_matrices_stay_so_and_zeros_and_shared_memory_too() -> None:
    torch.manual_seed(0)
    half = torch.randn(96, 96, dtype=torch.float64)
    matrix = uneven(half @ half.t())
    # f m g and g m f are equal but for their roundings
    assert torch.allclose(matrix, matrix.t(), rtol=1e-14) and float(torch.linalg.eigvalsh(matrix).min()) > 0
    assert not uneven(torch.tril(half)).triu(1).any()
    rows = uneven(torch.ones(1, 8).expand(3, 8).clone().as_strided((3, 8), (8, 1)))
    assert rows.unique().numel() == 5  # five bits, of which none to four are 1: no row of three has both of its own
    assert uneven(torch.ones(1)).tolist() == [1.0]


def test_tables_sorted_edges_and_what_is_held_twice_are_not_drawn_one_by_one() -> None:
    torch.manual_seed(0)
    one, other = torch.randn(6, 64), torch.randn(6, 64)
    assert drawn_one_by_one(one, other) and drawn_one_by_one(one.bfloat16(), other.bfloat16())
    assert drawn_one_by_one(one[0, :1], other[0, :1]) and drawn_one_by_one(one[0, 0], other[0, 0])
    assert not drawn_one_by_one(one, one.clone()), "a table"
    assert not drawn_one_by_one(one.sort(-1).values, other.sort(-1).values)
    assert not drawn_one_by_one(one.sort(-1, descending=True).values, other.sort(-1, descending=True).values)
    assert not drawn_one_by_one(torch.cat([one, one], -1), torch.cat([other, other], -1))
    assert not drawn_one_by_one(one.repeat_interleave(2, -1), other.repeat_interleave(2, -1))
    assert not drawn_one_by_one(one, other[:5])
