"""What is right in a round of the CPU path where roundings decide whole numbers."""

from __future__ import annotations

import time

import pytest

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.errors.comparison import Match
from rlkernel.evaluator.judging.references.ending import FEWEST_SECONDS
from rlkernel.evaluator.judging.rounds import Expected, compare_round
from rlkernel.reference import load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        {body}

def get_inputs():
    x = torch.linspace(0, 1, 4).repeat(64, 1) + 0.01 * torch.rand(64, 4)
    x[7] = torch.tensor([0.0, 8.5, 9.2, 1.0])
    return [x]

def get_init_inputs():
    return []
"""
LARGEST = "return torch.tanh(x).argmax(1)"  # tanh at 8.5 and at 9.2 differs by one unit in the last place
ENDLESS = "while x[0].softmax(0).double().sum() < 1 - 1.5e-7: pass"


def judged(expected: Expected, changes: dict[int, int]) -> Match:
    found = expected.reference[0].clone()
    for place, value in changes.items():
        found[place] = value
    return compare_round(expected.structure, [found], [False], [False], list(expected.inputs), {}, expected)


@pytest.mark.parametrize(
    ("changes", "right"), [({}, True), ({7: 1}, True), ({7: 0}, False), ({8: 2}, False), ({7: 1, 8: 2}, False)]
)
def test_a_whole_number_is_another_one_where_roundings_decide_it(changes: dict[int, int], right: bool) -> None:
    reference = load_reference(SOURCE.format(body=LARGEST), small=False)
    for one in next(draw_rounds(reference, Precision.PYTORCH, "key", other=False)):  # the second call of a module, too
        assert one.expected.reference[0][7] == 2
        match = judged(one.expected, changes)
        assert match.matches is right
        assert right or match.detail.startswith(f"output: {len(changes)} of 64 elements differ")


def test_a_reference_that_never_ends_with_other_roundings_is_given_up() -> None:
    """One that goes on until shares add up to 1: with other roundings each of them is a little less."""
    reference = load_reference(SOURCE.format(body=f"{ENDLESS}\n        return (x > 0.5).sum(1)"), small=False)
    first, *_ = next(draw_rounds(reference, Precision.PYTORCH, "key", other=False))
    since = time.process_time()
    assert judged(first.expected, {3: 1}).detail == "output: 1 of 64 elements differ"
    assert time.process_time() - since > 0.9 * FEWEST_SECONDS  # it did not end by itself


CHOOSES = """first, second, one, other = x.unbind(1)
        y = x @ torch.eye(4)  # of 1 and 1 + 2^-12 tf32 makes equal numbers
        return torch.where(y[:, 0] >= y[:, 1], one + 1, -other - 1)"""
NEAR = SOURCE.replace("torch.tensor([0.0, 8.5, 9.2, 1.0])", "torch.tensor([1.0, 1.0 + 2**-12, 1.0, 1.0])")


@pytest.mark.parametrize(("changed", "right"), [((), True), ((7,), True), ((8,), False), ((7, 8), False)])
def test_another_choice_is_right_where_tf32_makes_it(changed: tuple[int, ...], right: bool) -> None:
    """By float32 the second of the two is larger, and row 7 gives -2; with operands in tf32 it gives 2."""
    reference = load_reference(NEAR.format(body=CHOOSES), small=False)
    expected = next(draw_rounds(reference, Precision.PYTORCH, "key", other=False))[0].expected
    found = expected.reference[0].clone()
    assert found[7] == -2.0 and all(side[7] == 2.0 for side in expected.rounded[0])
    found[list(changed)] *= -1
    match = compare_round(expected.structure, [found], [False], [False], list(expected.inputs), {}, expected)
    assert match.matches is right
    strict = next(draw_rounds(reference, Precision.STRICT, "key", other=False))[0].expected
    assert strict.rounded == {}, "where nobody may use tf32"
