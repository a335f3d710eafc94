"""Inputs that differ in size from place to place: a part of them does not stand for all."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.inputs.unevenness import KEPT, drawn_one_by_one, factors, uneven

ROWS, COLS = 4, 4096


def test_the_factors_of_a_place_are_those_of_its_bits() -> None:
    found = factors(5, 0.125, torch.float32, torch.device("cpu"))  # three bits: 1 if set, else 0.875 / 1.125 = 7 / 9
    assert found.tolist() == pytest.approx([(7 / 9) ** 3, (7 / 9) ** 2, (7 / 9) ** 2, 7 / 9, (7 / 9) ** 2], rel=1e-6)


@pytest.mark.parametrize("shape", [(7,), (4, 4096), (4096, 4096), (16, 3, 128, 128), (2,) * 12])
def test_nothing_gets_larger_or_smaller_than_a_tenth(shape: tuple[int, ...]) -> None:
    """Example: 24 bits, s = tanh(ln(10) / 48) = 0.048, and ((1 - s) / (1 + s)) ^ 24 = 0.1."""
    found = uneven(torch.ones(shape))
    assert float(found.amax()) == pytest.approx(1.0) and float(found.amin()) >= 0.0999


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.complex64])
def test_the_largest_number_stays_as_large(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    row = torch.randn(300, 500).to(dtype)
    near = 2 * torch.finfo(dtype).eps
    assert float(uneven(row.clone()).abs().amax()) == pytest.approx(float(row.abs().amax()), rel=near)
    assert float(uneven(row.clone(), 8.0).abs().amax()) == pytest.approx(8 * float(row.abs().amax()), rel=near)
    assert not uneven(torch.zeros(3, 4)).any() and uneven(torch.full((2, 2), torch.inf)).isinf().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("size", [KEPT, KEPT + 1, 5 * KEPT + 3])
def test_the_factors_of_many_places_are_those_of_their_bits(size: int, dtype: torch.dtype) -> None:
    found, bits = factors(size, 0.125, dtype, torch.device("cpu")), (size - 1).bit_length()
    assert found.shape == (size,) and found.dtype is dtype
    for place in (0, 1, KEPT - 1, KEPT // 3, size // 2, size - 1):
        wanted = (7 / 9) ** (bits - place.bit_count())
        assert float(found[place]) == pytest.approx(wanted, rel=max(1e-6, torch.finfo(dtype).eps))


def test_another_factor_for_all_places_is_taken_along() -> None:
    given = torch.rand(6, 9)
    assert torch.equal(uneven(given.clone(), 8.0), 8.0 * uneven(given.clone()))
    assert uneven(torch.ones(1, 1), 8.0).tolist() == [[8.0]]


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
    assert (
        rows.mul(1e5).round().unique().numel() == 5
    )  # five bits, of which none to four are 1: no row of three has both of its own
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
