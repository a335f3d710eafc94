"""Where a wrong output differs, as a person is told."""

from __future__ import annotations

import math

import pytest
import torch

from rlkernel.evaluator.judging.errors.place import place_of
from rlkernel.evaluator.messages.judgement import Tolerance

TIGHT = Tolerance(norm=1e-4, element=1.0)
ZERO, U64 = torch.zeros(2, 2), torch.uint64
X = torch.tensor([[1.0, -2.0], [3.0, 4.0]])


def changed(tensor: torch.Tensor, at: tuple[int, ...], value: complex) -> torch.Tensor:
    other = tensor.clone()
    other[at] = value
    return other


@pytest.mark.parametrize(
    ("found", "exact", "told"),
    [
        (changed(X, (0, 1), -2.5), X, "worst at [0, 1]: -2.5, expected -2; 1 of 4 elements differ"),
        (X + 1, X.double(), "worst at [0, 0]: 2, expected 1; 4 of 4 elements differ"),
        # Beside a root mean square of 2.7, 1e-5 is nothing.
        (changed(X + 1e-5, (1, 1), 4.1), X, "worst at [1, 1]: 4.1, expected 4; 1 of 4 elements differ"),
        (changed(X, (1, 0), math.nan), X, "worst at [1, 0]: nan, expected 3; 1 of 4 elements differ"),
        (X, changed(X, (1, 0), math.inf), "worst at [1, 0]: 3, expected inf; 1 of 4 elements differ"),
        (ZERO, ZERO, ""),
        (changed(ZERO, (0, 0), 1e-3), ZERO, "worst at [0, 0]: 0.001, expected 0; 1 of 4 elements differ"),
        (torch.tensor([1, 2, 9]), torch.tensor([1, 2, 3]), "worst at [2]: 9, expected 3; 1 of 3 elements differ"),
        (torch.tensor([True]), torch.tensor([False]), "worst at [0]: True, expected False; 1 of 1 elements differ"),
        (torch.tensor([1j, 2 + 1j]), torch.tensor([1j, 2.0]), "worst at [1]: 2+1j, expected 2+0j; 1 of 2 elements differ"),
        (torch.tensor(2.0), torch.tensor(1.0), "worst at []: 2, expected 1; 1 of 1 elements differ"),
        (X.to(torch.float8_e4m3fn), X + 1, "worst at [0, 1]: -2, expected -1; 4 of 4 elements differ"),
        (torch.tensor([5]).to(U64), torch.tensor([6]).to(U64), "worst at [0]: 5, expected 6; 1 of 1 elements differ"),
        (X, X, ""),
        (X, X[0], ""),
        (torch.empty(0), torch.empty(0), ""),
    ],
)  # fmt: skip
def test_the_worst_element_and_how_many_differ(found: torch.Tensor, exact: torch.Tensor, told: str) -> None:
    assert place_of(found, exact, TIGHT) == told
