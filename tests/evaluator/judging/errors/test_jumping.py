"""Real numbers that are made of whole ones which roundings decide."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from rlkernel.evaluator.judging.errors.jumping import LEAST, right_by_some
from rlkernel.evaluator.judging.errors.wavering import OtherRoundings
from rlkernel.evaluator.messages.judgement import Tolerance
from tests.evaluator.judging.errors.test_wavering import Answer

ALLOWED = Tolerance(5e-5, 1e-3)
WEIGHTS = torch.linspace(-1, 1, 64).view(4, 16)
STEP = torch.tensor(0.6)
X = torch.tensor([[4.5, 0.6, 1.8, 6.0], [1.0, 0.6, 1.6, 0.2], [0.4, 1.4, 0.2, 0.8], [0.2, 0.4, 0.8, 1.0]])
"""4.5 / 0.6 is 7.4999997, since float32's 0.6 is a little more; 4.5 times its reciprocal is 7.5, which is rounded to 8."""


def product(x: torch.Tensor) -> torch.Tensor:
    return torch.round(x / STEP.to(x.dtype)) @ WEIGHTS.to(x.dtype)


def is_right(
    found: torch.Tensor, answer: Callable[[torch.Tensor], torch.Tensor] = product, x: torch.Tensor = X,
    allowed: Tolerance = ALLOWED,
) -> bool:  # fmt: skip
    made = lambda: Answer(answer), lambda: [x.clone()], 0
    match = right_by_some(found, answer(x.double()), 0, OtherRoundings(*made), allowed=allowed, overlapping=False, where="output")
    return match is not None and match.matches


def test_a_row_whose_number_is_rounded_the_other_way_is_right() -> None:
    by_reciprocal = torch.round(X * (1 / STEP)) @ WEIGHTS
    assert torch.equal(by_reciprocal[1:], product(X)[1:])
    assert float((by_reciprocal - product(X))[0].abs().max()) == 1.0
    assert is_right(by_reciprocal)


@pytest.mark.parametrize(("row", "column", "number"), [(0, 0, 9.0), (0, 0, 6.0), (1, 0, 1.0), (3, 2, 2.0)])
def test_numbers_that_no_rounding_gives_are_wrong(row: int, column: int, number: float) -> None:
    """9 and 6 are no neighbours of 7.5, and the others are no ties: 1 / 0.6 is 2, and 0.8 / 0.6 is 1."""
    whole = torch.round(X / STEP)
    whole[row, column] = number
    assert not is_right(whole @ WEIGHTS)


def test_an_element_of_a_row_is_wrong_where_the_rest_of_it_is_right() -> None:
    found = torch.round(X * (1 / STEP)) @ WEIGHTS
    found[0, 3] += 0.01 * float(found.square().mean().sqrt())
    assert not is_right(found)


def test_where_nothing_jumps_the_reference_is_called_once() -> None:
    calls = list[int]()

    def smooth(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return (x / 15) @ WEIGHTS.to(x.dtype)

    assert not is_right(smooth(X) * 1.001, smooth)
    assert len(calls) == 3  # the answer that is found, the one in float64, and one with other roundings


def test_what_jumps_everywhere_excuses_nobody() -> None:
    """All numbers but one are 7.4999997, so that another answer might be right nearly anywhere."""

    def ties(x: torch.Tensor) -> torch.Tensor:
        return torch.round(torch.where(x == 6.0, 6.0, 4.5).to(x.dtype) / STEP.to(x.dtype))

    found = ties(X)
    found[0, 0] = 8.0
    assert not is_right(found, ties)


def test_numbers_that_are_equal_without_any_rounding_are_meant() -> None:
    """Of 128 numbers one is 8, and 8 / 8 is no more than 1 however it is rounded."""
    x = torch.arange(-63.0, 65.0).view(8, 16)

    def above(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x / 8 > 1, x, -x)

    assert not is_right(torch.where(x / 8 >= 1, x, -x), above, x)
    assert not is_right(torch.floor(x / 8 + 0.5), lambda x: torch.round(x / 8), x)
    assert not is_right(torch.where(x.exp() >= 1, x + 1, 0.0), lambda x: torch.where(x.exp() > 1, x + 1, 0.0), x)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("units", [4.0, 6.0])
def test_what_only_moves_with_the_roundings_excuses_no_factor(dtype: torch.dtype, units: float) -> None:
    """Four units in the last place of bfloat16 are 3 %."""

    def kept(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, torch.exp(x), torch.zeros_like(x))

    x = torch.linspace(-5, 8, 1024).to(dtype).view(32, 32)
    factor = 1 - units * torch.finfo(dtype).eps
    allowed = Tolerance(2.5 * torch.finfo(dtype).eps, 13 * torch.finfo(dtype).eps)
    assert not is_right((kept(x.double()) * factor).to(dtype), kept, x, allowed)


def test_nobody_is_excused_where_float64_does_not_tell() -> None:
    def asks(x: torch.Tensor) -> torch.Tensor:
        if x.dtype is torch.float64 and asked:
            raise RuntimeError("this takes float32 alone")
        return product(x)

    found, asked = torch.round(X * (1 / STEP)) @ WEIGHTS, list[int]()
    assert is_right(found, asks)
    made = lambda: Answer(asks), lambda: [X.clone()], 0
    exact = asks(X.double())
    asked.append(1)
    match = right_by_some(found, exact, 0, OtherRoundings(*made), allowed=ALLOWED, overlapping=False, where="output")
    assert match is None


@pytest.mark.parametrize(("wrong", "calls"), [(4, LEAST), (20, 0)])
def test_no_more_calls_are_made_where_none_of_the_first_ones_jumps_or_too_much_is_wrong(wrong: int, calls: int) -> None:
    taken, whole = list[int](), torch.round(X / STEP) * STEP

    def build() -> Answer:
        taken.append(len(taken))
        return Answer(product)

    found = product(whole)
    found.view(-1)[:wrong] += 1.0
    roundings = OtherRoundings(build, lambda: [whole.clone()], 0)
    exact = product(whole.double())
    assert right_by_some(found, exact, 0, roundings, allowed=ALLOWED, overlapping=False, where="output") is None
    assert len(taken) == calls
