"""Numbers of one input that are those of another one: where that shows something, and how they get there."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.met import SHARE, met_by
from rlkernel.evaluator.judging.inputs.unshown import UNSHOWN, plants_of
from rlkernel.evaluator.messages.judgement import Met, Plant
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, y, edges, whole, column):
        return {answer}

def get_inputs():
    edges = torch.randn(32).sort().values
    return [torch.randn(64, 32), torch.randn(64, 32), edges, torch.randint(0, 9, (64, 32)), torch.randn(64, 1)]

def get_init_inputs():
    return []
"""


def reference(answer: str) -> Reference:
    return load_reference(SOURCE.format(answer=answer), small=False)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("torch.where(x >= y, x.exp(), -y)", [Met(0, 1, False)]),
        ("torch.where(x >= y, x, y)", []),  # where they are equal, either is right
        ("(x == y).float()", [Met(0, 1, False)]),
        ("torch.where(x < edges, x.exp(), -x)", [Met(0, 2, False)]),  # one for each column
        ("(edges < x) * y", [Met(0, 2, False)]),  # the larger one gets them
        ("(x[:1].clone() < y) * y", []),
        ("(column < edges) * x", []),  # neither has the shape of what comes of it
        ("torch.bucketize(x, edges)", [Met(0, 2, True)]),
        ("torch.searchsorted(edges, y, right=True)", [Met(1, 2, True)]),
        ("y - 0.01 * torch.sign(0.9 * x + 0.1 * y)", [Plant(0, (0.0,), also=(1,))]),  # zero in both
        ("torch.where(x * y > 0, 1.0, y)", [Plant(0, (0.0,), also=(1,))]),
        ("torch.where(x * y > 0, x, 0.1 * x)", []),  # where both are zero, so is the answer
        ("torch.sign(x + 1)", []),
        ("torch.round(4 * x)", []),  # another order of the same steps may miss a half
        ("torch.where(x[:, :8] >= y[:, :8], 1.0, 0.0)", []),  # parts of inputs
        ("(whole > whole.flip(0)).float()", []),
        ("(x > x.flip(0)).float()", []),
    ],
)
def test_where_numbers_matter_that_meet(answer: str, found: list[Met | Plant]) -> None:
    assert list(plants_of(reference(answer), "")) == found


def test_an_input_gets_numbers_of_another_one_at_places_of_the_seed() -> None:
    x, y, edges = torch.randn(64, 32).t(), torch.randn(32, 64), torch.randn(16)
    there = met_by([x, y], Met(0, 1, False), 3)[0]
    met = there == y
    assert 0.5 * SHARE < float(met.float().mean()) < 1.5 * SHARE and torch.equal(there[~met], x[~met])
    assert there.stride() == x.stride() and not torch.equal(there, met_by([x, y], Met(0, 1, False), 4)[0])
    anywhere = met_by([x, edges], Met(0, 1, True), 3)[0]
    assert len(anywhere[torch.isin(anywhere, edges)].unique()) == 16 and torch.equal(anywhere[~met], x[~met])
    assert met_by([x, y], Met(0, 1, False), 3)[1] is y


def test_they_meet_in_a_round_of_their_own_whose_bounds_are_as_tight() -> None:
    compares = reference("torch.where(x >= y, x.exp(), -y)")
    rounds = draw_rounds(compares, Precision.PYTORCH, "key", other=False, plants=plants_of(compares, ""))
    every = [one for some in rounds for one in some]
    meets = [UNSHOWN in one.expected.note for one in every]
    equal = [int((one.inputs[0] == one.inputs[1]).sum()) for one in every]
    assert sum(meets) == 1 and meets == [count > 100 for count in equal]  # one of 2,048 may be equal by chance
    assert [one.expected.allowed[0].norm for one in every if UNSHOWN in one.expected.note] == [5e-5]


@pytest.mark.parametrize(("apart", "found"), [(1 << 18, [Met(0, 1, False)]), (1 << 12, [])])
def test_numbers_that_meet_by_chance_meet_in_no_other_draw(apart: int, found: list[Met | Plant]) -> None:
    """Of 16 million numbers of two draws one or two are equal, so that whoever takes the other side there is right next time. One
    in 262,144 is less than one in 100,000, and one in 4,096 is more."""
    source = f"""
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, y):
        return torch.where(x >= y, x.exp(), -y)

def get_inputs():
    x = torch.arange(1 << 18) % 7 + 0.25
    return [x, torch.where(torch.arange(1 << 18) % {apart} == 3, x, x.flip(0) + 0.5)]

def get_init_inputs():
    return []
"""
    assert list(plants_of(load_reference(source, small=False), "")) == found
