"""Numbers that bfloat16 rounds to one side, and where nothing else tells it from float32."""

from __future__ import annotations

import math

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.errors.tensor_cores import nearest, truncated
from rlkernel.evaluator.judging.inputs.one_sided import NOTE, of_bfloat16, one_sided, one_sided_of
from rlkernel.evaluator.messages.judgement import OneSided
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 48))
    def forward(self, x, t):
        return {answer}

def get_inputs():
    return [torch.randn(256, 64){kind}, torch.randn(256, 48)]

def get_init_inputs():
    return []
"""


def reference(answer: str, kind: str = "") -> Reference:
    return load_reference(SOURCE.format(answer=answer, kind=kind), small=False)


@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1.0, 3e4])
def test_such_numbers_are_tf32s_and_all_are_smaller_in_bfloat16(scale: float) -> None:
    given = scale * torch.randn(4096)
    given = given[given != given.round()]
    made = one_sided(given)
    for rounding in (nearest, truncated):
        assert torch.equal(rounding(made.double()), made.double())
    assert bool((of_bfloat16(made).abs() < made.abs()).all())
    lost = 1.0 - of_bfloat16(made) / made
    assert float(lost.min()) > 0.001 and float(lost.max()) < 0.003
    assert torch.allclose(made, given, rtol=2.0**-7) and torch.equal(one_sided(made), made)


def test_whole_numbers_and_what_is_no_float32_stay() -> None:
    given = torch.tensor([0.0, 1.0, -3.0, math.inf, -math.inf, -1e9])
    assert torch.equal(one_sided(given), given) and one_sided(torch.tensor([math.nan])).isnan().all()
    for other in (torch.randn(8).half(), torch.arange(8), torch.randn(8).double()):
        assert one_sided(other) is other


def test_the_layout_stays() -> None:
    assert one_sided(torch.randn(4, 8).t()).stride() == (1, 8)


@pytest.mark.parametrize(
    ("answer", "kind", "found"),
    [
        ("F.mse_loss(x @ self.weight, t)", "", True),
        ("F.mse_loss(x.bfloat16().float() @ self.weight, t)", "", True),  # the weight alone
        ("(t, F.mse_loss(x @ self.weight, t))", "", True),  # one of two results
        ("x @ self.weight + t", "", False),  # each of whose elements tells
        ("F.relu(x @ self.weight).sum(1)", "", False),
        ("F.mse_loss(x @ self.weight.bfloat16(), x @ self.weight.bfloat16())", ".bfloat16()", False),
        ("(x.sum() > 0).float() + t.argmax()", "", False),
    ],
)
def test_where_nothing_else_tells_bfloat16(answer: str, kind: str, found: bool) -> None:
    assert one_sided_of(reference(answer, kind)) == (OneSided(),) * found


def test_inputs_and_weights_are_such_in_a_round_of_their_own() -> None:
    rounds = draw_rounds(reference("F.mse_loss(x @ self.weight, t)"), Precision.PYTORCH, "k", other=False, plants=(OneSided(),))
    every = [one for some in rounds for one in some]
    sided = [one for one in every if NOTE in one.expected.note]
    assert len(sided) == 1 and torch.equal(one_sided(sided[0].inputs[0]), sided[0].inputs[0])
    assert torch.equal(one_sided(sided[0].state["weight"]), sided[0].state["weight"])
