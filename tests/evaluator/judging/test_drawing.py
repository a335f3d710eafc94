"""Rounds: a module that is called before it is judged is called alike on both sides."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.drawing import Before, draw_rounds
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
