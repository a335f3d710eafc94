"""Constants that large inputs hide have a round of their own, and so has what never varies."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.references.hidden import hidden
from rlkernel.evaluator.judging.references.plan import Plan, Terms
from rlkernel.evaluator.judging.references.reference_calls import call, mapped, tensors_of
from rlkernel.evaluator.messages.judgement import Tolerance
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.sink = nn.Parameter(torch.zeros(16))
        self.gain = nn.Parameter(torch.ones(16))
        self.register_buffer("unread", torch.zeros(3))

    def forward(self, x):
        return {answer}

def get_inputs():
    return [torch.randn(64, 16)]

def get_init_inputs():
    return []
"""
SINK = "torch.softmax(torch.cat([x @ x[:8].mT * 0.25, self.sink[:1].expand(64, 1)], 1), 1)[:, :-1] @ x[:8] * self.gain"
"""Attention with one more score, which a row of large scores hides."""


def reference(answer: str) -> Reference:
    return load_reference(SOURCE.format(answer=answer), small=False)


@pytest.mark.parametrize(("scale", "names"), [(1.0, {"unread"}), (64.0, {"unread", "sink"})])
def test_what_large_inputs_hide(scale: float, names: set[str]) -> None:
    plan = Plan(reference(SINK), Terms(Precision.PYTORCH), 3, False, [])
    inputs = mapped(plan.reference.inputs(1), lambda x: x * scale)
    given = tensors_of(call(plan.perturbed(), inputs, 0))
    assert hidden(plan, inputs, 0, given, [Tolerance(1e-3, 0.1)]) == names


@pytest.mark.parametrize(
    ("answer", "more"),
    [
        (SINK, 1),
        ("x * self.gain + self.sink", 0),  # three hundredths of the output, which is much more than is allowed
        ("x + 0 * self.sink", 0),  # no round shows it
    ],
)
def test_such_a_constant_is_in_a_round_at_usual_inputs(answer: str, more: int) -> None:
    rounds = [one for some in draw_rounds(reference(answer), Precision.PYTORCH, "key", other=False) for one in some]
    notes = [one.expected.note for one in rounds]
    assert notes.count(" (parameters at other values)") == more and len(rounds) == 3 + more


BIAS = SOURCE.replace("def forward(self, x)", "def forward(self, x, bias)").replace(
    "return [torch.randn(64, 16)]", "return [torch.randn(64, 16), torch.zeros(16)]"
)


def test_what_varies_may_hide_a_constant_that_shows_where_nothing_does() -> None:
    """It shows where a bias is zero, which it is in each draw, and in no round in which it varies."""
    one = load_reference(BIAS.format(answer="torch.where(bias == 0, x + self.sink, x + bias)"), small=False)
    drawn = [each for some in draw_rounds(one, Precision.PYTORCH, "key", other=False) for each in some]
    assert [each.expected.note for each in drawn[3:]] == [
        " (inputs of one value at others, parameters at other values)", " (parameters at other values)",
    ]  # fmt: skip


LENGTHS = SOURCE.replace("def forward(self, x)", "def forward(self, x, lengths)").replace(
    "return [torch.randn(64, 16)]", "return [torch.randn(64, 16), torch.full((64,), 48)]"
)
KEYS = "torch.softmax((x @ x.mT).masked_fill(torch.arange(64) >= lengths[:, None], -torch.inf), 1) @ x"


@pytest.mark.parametrize(
    ("source", "answer", "mild"),
    [(LENGTHS, KEYS, 1), (SOURCE, "x * 2", 0)],
    ids=["lengths that are always full", "nothing that never varies"],
)
def test_what_never_varies_is_in_a_round_at_usual_inputs(source: str, answer: str, mild: int) -> None:
    """With scores 64 times as large the largest key alone counts, and who reads 15 keys behind a length is mostly right."""
    rounds = [
        one
        for some in draw_rounds(load_reference(source.format(answer=answer), small=False), Precision.PYTORCH, "key", other=False)
        for one in some
    ]
    enlarged = [one for one in rounds if one.enlarged]
    usual = [one for one in rounds if len(one.inputs) == 2 and one.inputs[1].unique().tolist() == [25, 48] and not one.enlarged]
    assert (len(enlarged), len(usual)) == (mild, mild)
    for one in usual:
        assert one.inputs[0].std() < 1.2 and one.expected.note == " (inputs of one value at others, parameters at other values)"
    for one in enlarged:
        assert one.inputs[0].std() > 2.0 and one.inputs[1].unique().tolist() == [25, 48]
