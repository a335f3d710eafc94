"""Rows that point the same way, or opposite ways, where a cosine or a distance has a bound that no draw comes near to."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.agreeing import TIMES, move_toward
from rlkernel.evaluator.judging.inputs.sowing import planted
from rlkernel.evaluator.judging.inputs.unshown import plants_of
from rlkernel.evaluator.messages.judgement import Plant
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(48, 32))

    def forward(self, a, b, t):
        return {answer}

def get_inputs():
    return [torch.randn(64, 32), torch.randn(64, 32), torch.randn(64, 16)]

def get_init_inputs():
    return []
"""


COSINE = "(a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))"
NEAREST = "F.linear(a / a.norm(dim=1, keepdim=True), self.weight / self.weight.norm(dim=1, keepdim=True))"


def source(answer: str) -> str:
    return SOURCE.format(answer=answer.replace("cosine", f"({COSINE})").replace("nearest", f"({NEAREST})"))


def reference(answer: str) -> Reference:
    return load_reference(source(answer), small=False)


def agreeing(answer: str) -> list[Plant]:
    """The plants of rows of one."""
    found = plants_of(reference(answer), source(answer))
    return [one for one in found if isinstance(one, Plant) and one.values[0] == 1.0]


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("torch.where(cosine > 0.9995, cosine, -cosine)", Plant(0, (1.0,), along=(-1,), also=(1,))),
        ("torch.where(cosine < -0.9, 0.0, cosine)", Plant(0, (1.0,), along=(-1,), also=(1,), opposed=True)),
        ("torch.where((a - b).norm(dim=1) < 0.1, 1.0, cosine)", Plant(0, (1.0,), along=(-1,), also=(1,))),
        ("torch.where(nearest > -0.88, nearest, 2.0)", Plant(0, (1.0, -1.0), along=(-1,), toward="weight")),
        ("torch.where(cosine > 0.1, cosine, -cosine)", None),  # which some draws are and some not
        ("torch.where(cosine > 1.5, 0.0, cosine)", None),  # which no cosine is
        ("torch.where(t.norm(dim=1) > 100.0, 0.0, cosine)", None),  # large numbers show it
    ],
)
def test_rows_agree_where_what_is_made_of_them_has_a_bound(answer: str, found: Plant | None) -> None:
    assert agreeing(answer) == ([] if found is None else [found])


def test_what_several_limits_ask_for_is_tried_once() -> None:
    """Large numbers in three inputs for each of four limits would be all calls that there are."""
    limits = "".join(f" + cosine.clamp(max={limit})" for limit in (1.01, 1.02, 1.03, 1.04))
    assert agreeing(f"torch.where(cosine > 0.9995, cosine, -cosine){limits}") == [Plant(0, (1.0,), along=(-1,), also=(1,))]


@pytest.mark.parametrize("opposed", [False, True])
def test_rows_of_all_inputs_lie_at_the_same_places(opposed: bool) -> None:
    drawn = [torch.zeros(64, 32), torch.zeros(64, 32), torch.zeros(64, 16)]
    one, other, rest = planted(drawn, Plant(0, (1.0,), along=(-1,), also=(1,), opposed=opposed), 3)
    rows = one[:, 0] == 1
    assert 0 < int(rows.sum()) < 64 and torch.equal(one, rows[:, None].expand(64, 32).float())
    assert torch.equal(other, -one if opposed else one) and rest is drawn[2]


def test_rows_of_a_parameter_point_one_way_beside_them() -> None:
    plant = Plant(0, (1.0, -1.0), along=(-1,), toward="weight")
    weight = reference("nearest").model(0).weight.detach()
    size = float(weight.square().mean().sqrt())
    moved = move_toward(reference("nearest").model(0), plant)
    assert torch.allclose(moved.weight, weight + TIMES * size)
    assert bool((torch.nn.functional.normalize(moved.weight).sum(1) / 32**0.5 > 0.97).all())


def test_they_are_in_a_round_of_their_own_on_both_sides() -> None:
    answer = "torch.where(nearest > -0.88, nearest, 2.0)"
    plants = tuple(agreeing(answer))
    drawn = [r for some in draw_rounds(reference(answer), Precision.PYTORCH, "key", other=False, plants=plants) for r in some]
    usual = [r for some in draw_rounds(reference(answer), Precision.PYTORCH, "key", other=False) for r in some]
    assert len(drawn) == len(usual) + 1
    noted = [one for one in drawn if "numbers among its inputs that an operator is for" in one.expected.note]
    assert len(noted) == 1 and bool((noted[0].expected.reference[0] == 2.0).any())
