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


@pytest.mark.parametrize(("times", "right"), [(1, True), (-2, True), (8, False)])
def test_a_token_that_no_rounding_chooses_for_may_miss_as_tf32_does(times: int, right: bool) -> None:
    """Token 2 has another expert wherever operands are rounded, by 2^-12, or cut off, by 2^-11. The gate of this candidate is in
    float32, and its products miss by so many times 2^-12; 3 are allowed (3 * 2^-12 = 7.3e-4, 1.25 * 2^-11 = 6.1e-4). bfloat16
    rounds 8 times as coarsely, which is 7 from the nearest side."""
    exact = token([0, 0, 1, 1]).double()
    sides = [exact, token([0, 0, 0, 1]) * (1 + 2**-12), token([0, 0, 0, 1]) * (1 - 2**-11)]
    found = token([0, 0, 1, 1]) * (1 + times * 2**-12)
    match = compare_with_any(found, sides, allowed=STRICT, overlapping=False, where="output")
    assert match.matches is right
    assert right or match.detail == "output is wrong: relative error 1.77e-03, allowed 7e-04"


def test_one_result_is_compared_as_ever() -> None:
    wrong = token([0, 0, 1, 1]) * 1.001
    match = compare_with_any(wrong, [token([0, 0, 1, 1])], allowed=STRICT, overlapping=False, where="output 2")
    assert not match.matches and match.detail == "output 2 is wrong: relative error 1.00e-03, allowed 1e-05"


@pytest.mark.parametrize(
    ("found", "right"), [([4, 2, 9, 5], True), ([4, 7, 1, 5], True), ([4, 2, 8, 5], False), ([5, 7, 9, 5], False)]
)
def test_whole_numbers_are_those_of_some_side(found: list[int], right: bool) -> None:
    sides = [torch.tensor([4, 2, 1, 5]), torch.tensor([4, 7, 9, 5])]
    assert compare_with_any(torch.tensor(found), sides, allowed=STRICT, overlapping=False, where="x").matches is right


def test_where_roundings_decide_most_an_output_is_one_side_as_a_whole() -> None:
    """Of sixteen sums, whether each is odd, in five orders: zeros are right by some side everywhere, and by none as a whole."""
    sides = [torch.tensor([float(number >> place & 1) for place in range(16)]) for number in (0x0F0F, 0xF0F0, 0x3333, 0x5555, 1)]
    nothing = torch.zeros(16)
    assert all(any(side[place] == 0 for side in sides) for place in range(16))
    match = compare_with_any(nothing, sides, allowed=STRICT, overlapping=False, where="output")
    assert not match.matches and match.detail == "output is wrong: relative error 1.00e+00, allowed 1e-05"
    assert compare_with_any(sides[3], sides, allowed=STRICT, overlapping=False, where="output").matches


@pytest.mark.parametrize(("change", "right"), [("none", True), ("rows", False), ("size", False), ("tf32", False)])
def test_what_no_rounding_gives_is_wrong_beside_many_sides(change: str, right: bool) -> None:
    """Tokens that exchange rows, errors of the size of tf32's everywhere, one token that is wrong where sides differ."""
    tokens = torch.randn(32, 16, generator=torch.Generator().manual_seed(0))

    def chosen(second: list[int]) -> torch.Tensor:
        return torch.where(torch.isin(torch.arange(32), torch.tensor(second))[:, None], -2 * tokens, 3 * tokens)

    sides = [chosen([]), chosen([1, 2]).double(), chosen([2, 5]), chosen([9])]
    found = chosen([1, 5, 9])
    if change == "rows":
        found[[5, 9]] = found[[9, 5]]
    elif change == "size":
        found[5] = 0.5 * tokens[5]  # between both experts
    elif change == "tf32":
        found = found * (1 + 4e-4 * torch.randn(found.shape, generator=torch.Generator().manual_seed(1)))
    assert compare_with_any(found, sides, allowed=STRICT, overlapping=False, where="output").matches is right


def test_infinities_are_those_of_some_side() -> None:
    sides = [torch.tensor([1.0, 2.0, float("nan"), 3.0, 5.0]), torch.tensor([float("inf"), 2.0, 4.0, 3.0, 5.0])]
    for found, right in (([float("inf"), 2, 4, 3, 5], True), ([1, 2, float("nan"), 3, 5], True), ([1, 2, 7, 3, 5], False)):
        match = compare_with_any(torch.tensor(found), sides, allowed=STRICT, overlapping=False, where="x")
        assert match.matches is right, found
