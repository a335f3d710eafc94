"""KernelBench's own comparison, against what its code computes."""

from __future__ import annotations

import math

import pytest
import torch

from rlkernel.evaluator.judging.errors.kernelbench import closeness, surely_tight, worse
from rlkernel.types import Closeness


@pytest.mark.parametrize(
    ("found", "reference", "want"),
    [
        (1.0 + 1.5e-4, 1.0, Closeness.TIGHT),  # 1e-4 + 1e-4 * 1.00015
        (1.0 + 3e-4, 1.0, Closeness.LOOSE),
        (1.0 + 1.9e-2, 1.0, Closeness.LOOSE),
        (1.0 + 2.2e-2, 1.0, Closeness.NO),
        (0.0, 5e-5, Closeness.TIGHT),  # small values are close to zero
        (0.0, 9e-3, Closeness.LOOSE),
        (math.inf, math.inf, Closeness.TIGHT),
        (math.nan, math.nan, Closeness.NO),
    ],
)
def test_by_hand(found: float, reference: float, want: Closeness) -> None:
    assert closeness([torch.full((3, 5), found)], [torch.full((3, 5), reference)]) is want


def test_the_candidates_size_counts_as_in_kernelbenchs_code() -> None:
    """It calls allclose(reference, candidate), in which rtol is relative to the candidate."""
    reference, found = torch.tensor([100.0]), torch.tensor([101.015])
    # 1.015 <= 1e-2 + 1e-2 * 101.015 = 1.02015; relative to the reference it would be 1.01
    assert torch.allclose(reference, found, atol=1e-2, rtol=1e-2) and not torch.allclose(found, reference, atol=1e-2, rtol=1e-2)
    assert closeness([found], [reference]) is Closeness.LOOSE


def test_shapes_dtypes_and_numbers_of_outputs() -> None:
    one = torch.zeros(4)
    assert closeness([one], [one, one]) is Closeness.NO
    assert closeness([one.reshape(2, 2)], [one]) is Closeness.NO
    assert closeness([one.half()], [one]) is Closeness.NO
    assert closeness([torch.tensor([1, 2])], [torch.tensor([1, 2])]) is Closeness.TIGHT
    assert closeness([one, one + 5e-3], [one, one]) is Closeness.LOOSE, "the worst output counts"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.float16, torch.complex64])
@pytest.mark.parametrize("miss", [0.0, 5e-5, 9.9e-5, 1.1e-4, 1.0])
def test_what_is_surely_tight_is_so_by_kernelbenchs_rule(miss: float, dtype: torch.dtype) -> None:
    reference = torch.tensor([0.0, 3.0, -7.0]).to(dtype)
    found = reference + torch.tensor([miss, 0.0, 0.0]).to(dtype)
    largest = float((found - reference).abs().max())
    assert surely_tight(largest, [reference]) is (largest <= 1e-4 and dtype not in (torch.float16, torch.complex64))
    assert not surely_tight(largest, [reference]) or closeness([found], [reference]) is Closeness.TIGHT
    assert not surely_tight(math.inf, [reference]) and not surely_tight(math.nan, [reference])


def test_worse() -> None:
    assert worse(Closeness.TIGHT, Closeness.LOOSE) is worse(Closeness.LOOSE, Closeness.TIGHT) is Closeness.LOOSE
    assert worse(Closeness.NO, Closeness.TIGHT) is Closeness.NO
