"""Each element is held against the nearest of several right results."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.errors.several_right import compare_with_any
from rlkernel.evaluator.messages.judgement import Tolerance

STRICT = Tolerance(1e-5, 0.1)


def token(choice: list[int]) -> torch.Tensor:
    """What tokens get of the expert that each has chosen: 3 times itself of expert 0, -2 times of expert 1."""
    x_TD = torch.arange(1.0, 1.0 + 4 * 8).view(4, 8)
    return x_TD * torch.tensor([3.0, -2.0])[choice][:, None]


@pytest.mark.parametrize(
    ("choice", "right"), [([0, 0, 1, 1], True), ([1, 0, 1, 1], True), ([1, 0, 0, 1], True), ([1, 1, 1, 1], False)]
)
def test_a_token_may_choose_as_any_rounding_does(choice: list[int], right: bool) -> None:
    """The gate of tokens 0 and 2 likes both experts alike, that of 1 and 3 does not."""
    sides = [token([0, 0, 1, 1]), token([1, 0, 1, 1]).double(), token([0, 0, 0, 1]).double()]
    match = compare_with_any(token(choice), sides, allowed=STRICT, overlapping=False, where="output")
    assert match.matches is right
    assert right or match.detail.startswith("output is wrong: relative error")


def test_one_result_is_compared_as_ever() -> None:
    wrong = token([0, 0, 1, 1]) * 1.001
    match = compare_with_any(wrong, [token([0, 0, 1, 1])], allowed=STRICT, overlapping=False, where="output 2")
    assert not match.matches and match.detail == "output 2 is wrong: relative error 1.00e-03, allowed 1e-05"


@pytest.mark.parametrize(("found", "right"), [([4, 2, 9], True), ([4, 7, 1], True), ([4, 2, 8], False), ([5, 7, 9], False)])
def test_whole_numbers_are_those_of_some_side(found: list[int], right: bool) -> None:
    sides = [torch.tensor([4, 2, 1]), torch.tensor([4, 7, 9])]
    assert compare_with_any(torch.tensor(found), sides, allowed=STRICT, overlapping=False, where="x").matches is right
