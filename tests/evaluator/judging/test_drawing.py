"""Rounds: a module that is called before it is judged is called alike on both sides."""

from __future__ import annotations

import math
import random

import pytest
import torch

from rlkernel.evaluator.judging.drawing import BALANCED, Before, Construction, Terms, draw_rounds
from rlkernel.evaluator.judging.own_error import huge_from
from rlkernel.evaluator.messages.judgement import Stress
from rlkernel.reference import load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls += 1 if self.training else 10
        return x * self.calls

def get_inputs():
    return [torch.randn(4)]

def get_init_inputs():
    return []
"""


def calls(before: Before) -> list[float]:
    """What the reference's buffer says in each round: the factor between input and output."""
    rounds = draw_rounds(load_reference(SOURCE, small=False), Precision.PYTORCH, "key", other=True, before=before)
    return [float((one.expected.reference[0] / one.inputs[0]).median()) for one in rounds[:2]] + [
        float((rounds[3].expected.reference[0] / rounds[3].inputs[0]).median() - rounds[3].state["calls"])
    ]


def test_calls_before_the_rounds_are_made_in_each_mode() -> None:
    # the first module is judged twice; the last in the other mode, on top of the constant that its buffer was given
    assert calls(Before()) == pytest.approx([1.0, 2.0, 10.0], rel=1e-5)
    assert calls(Before(1)) == pytest.approx([2.0, 3.0, 11.0], rel=1e-5)
    assert calls(Before(1, 1)) == pytest.approx([2.0, 3.0, 21.0], rel=1e-5)


def test_a_round_has_the_weights_from_before_any_call_and_inputs_of_its_own() -> None:
    first, second, *_ = draw_rounds(load_reference(SOURCE, small=False), Precision.PYTORCH, "key", other=False, before=Before(1))
    assert first.state["calls"].item() == 0.0
    assert not torch.equal(first.first_inputs[0], first.inputs[0])
    assert (first.again, second.again) == (False, True)
    assert draw_rounds(load_reference(SOURCE, small=False), Precision.PYTORCH, "key", other=False)[0].first_inputs == []


RESIDUAL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x):
        y = self.layer(x)
        return x + torch.relu(y - y.mean(-1, keepdim=True))

def get_inputs():
    return [torch.randn(16, 32)]

def get_init_inputs():
    return []
"""


def test_what_is_added_to_a_product_does_not_make_usual_values_huge() -> None:
    # Out of half precision's range x is 2^-26 times as large: where relu gives zero, the output is about 1e-8, elsewhere about 1.
    *_, led = draw_rounds(load_reference(RESIDUAL, small=False), Precision.PYTORCH, "key", other=False)
    assert BALANCED in led.expected.note
    (output,), (allowed,) = led.expected.reference, led.expected.allowed
    assert float(output.abs().median()) < 1e-3 < 0.1 < float(output.max())
    assert huge_from(output) < math.inf == allowed.huge
    assert 5e-5 < allowed.norm < 2e-2, "as much as tf32 misses by"


NORMED = """
import torch
from torch import nn

CALLS = [0]

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        CALLS[0] += 1
        return self.norm({})

def get_inputs():
    return [torch.rand(16, 8)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("inside", "exactly"), [("x", 1), ("x @ x.T @ x", 3)])
def test_state_and_outputs_are_measured_in_the_same_calls(inside: str, exactly: int) -> None:
    reference = load_reference(NORMED.format(inside), small=False)
    made = Construction(reference, Terms(Precision.PYTORCH), random.Random(0))
    mean = torch.zeros(8, dtype=torch.float64)
    for again in range(2):
        one = made.round(Stress.NONE)
        # The call; in float64 as it is, and where there are products with their operands rounded, and cut off.
        assert reference.namespace["CALLS"] == [(again + 1) * (1 + exactly)]
        assert one.products == (exactly == 3)
        x = one.inputs[0].double()
        mean = 0.9 * mean + 0.1 * (x if exactly == 1 else x @ x.T @ x).mean(0)
        found, allowed = one.expected.state["norm.running_mean"]
        assert torch.allclose(found.double(), mean, rtol=1e-6)
        assert torch.allclose(made.exact_model.state_dict()["norm.running_mean"], mean, rtol=1e-14), "it goes on in float64"
        assert 0.0 < allowed.norm < 3e-3
