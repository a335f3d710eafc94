"""Real numbers that are made of whole ones which roundings decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from rlkernel.evaluator.judging.errors.jumping import LEAST, right_by_some
from rlkernel.evaluator.judging.errors.wavering import MORE_CALLS, with_other_roundings
from rlkernel.evaluator.messages.judgement import Tolerance

ALLOWED = Tolerance(5e-5, 1e-3)
WEIGHTS = torch.linspace(-1, 1, 64).view(4, 16)
X = 5 * torch.tensor([[7.5, 3.0, 9.0, 12.0], [5.0, 3.0, 8.0, 1.0], [2.0, 7.0, 1.0, 4.0], [1.0, 2.0, 4.0, 5.0]])
"""37.5 / 15 is a tie, which is rounded to 2; 37.5 times the fifteenth of float32 is 2.5000002, which is rounded to 3."""


class Answer(nn.Module):
    def __init__(self, answer: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.answer = answer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.answer(x)


def product(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x / 15) @ WEIGHTS.to(x.dtype)


def is_right(found: torch.Tensor, answer: Callable[[torch.Tensor], torch.Tensor] = product) -> bool:
    turns = with_other_roundings(lambda: Answer(answer), lambda: [X.clone()], 0)
    match = right_by_some(
        found, answer(X.double()), 0, turns, allowed=ALLOWED, overlapping=False, where="output"
    )  # fmt: skip
    return match is not None and match.matches


def test_a_row_whose_number_is_rounded_the_other_way_is_right() -> None:
    by_reciprocal = torch.round(X * torch.tensor(1 / 15)) @ WEIGHTS
    assert torch.equal(by_reciprocal[1:], product(X)[1:])
    assert float((by_reciprocal - product(X))[0].abs().max()) == 1.0
    assert is_right(by_reciprocal)


@pytest.mark.parametrize(("row", "column", "number"), [(0, 0, 4.0), (0, 0, 1.0), (1, 0, 1.0), (3, 2, 2.0)])
def test_numbers_that_no_rounding_gives_are_wrong(row: int, column: int, number: float) -> None:
    """4 and 1 are no neighbours of 2.5, and the others are no ties: 25 / 15 is 2, and 20 / 15 is 1."""
    whole = torch.round(X / 15)
    whole[row, column] = number
    assert not is_right(whole @ WEIGHTS)


def test_an_element_of_a_row_is_wrong_where_the_rest_of_it_is_right() -> None:
    found = torch.round(X * torch.tensor(1 / 15)) @ WEIGHTS
    found[0, 3] += 0.01 * float(found.square().mean().sqrt())
    assert not is_right(found)


def test_where_nothing_jumps_the_reference_is_called_once() -> None:
    calls = list[int]()

    def smooth(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return (x / 15) @ WEIGHTS.to(x.dtype)

    found = smooth(X)
    found[0] += 0.01
    assert not is_right(found, smooth)
    assert len(calls) == 3  # the answer that is found, the one in float64, and one with other roundings


def test_what_jumps_everywhere_excuses_nobody() -> None:
    """Half of all numbers are ties, so that another answer might be right anywhere."""

    def ties(x: torch.Tensor) -> torch.Tensor:
        return torch.round((x * 0 + 7.5) / 3)

    turns = with_other_roundings(lambda: Answer(ties), lambda: [X.clone()], 0)
    found = torch.full_like(X, 3.0)
    assert right_by_some(found, ties(X.double()), 0, turns, allowed=ALLOWED, overlapping=False, where="output") is None


def test_nothing_is_called_for_an_output_of_which_much_is_wrong() -> None:
    calls = list[int]()

    def answer(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return product(x)

    found = product(X)
    found[:2] += 1.0  # half of it
    assert not is_right(found, answer)
    assert len(calls) == 1  # the one in float64
    found[1] -= 1.0  # a quarter
    assert not is_right(found, answer)
    assert len(calls) == 2 + MORE_CALLS


def test_no_more_calls_are_made_where_none_of_the_first_ones_jumps() -> None:
    taken = list[int]()

    def turns() -> object:
        for number in range(MORE_CALLS):
            taken.append(number)
            yield [product(X)]

    found = product(X)
    found[0] += 1.0
    made = right_by_some(found, product(X.double()), 0, turns(), allowed=ALLOWED, overlapping=False, where="output")  # type: ignore[arg-type]
    assert made is None and len(taken) == LEAST
