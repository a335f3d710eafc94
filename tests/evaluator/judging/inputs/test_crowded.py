"""Choices that nearly all fall on one."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.inputs.crowded import crowded_of, may_crowd
from rlkernel.evaluator.judging.inputs.moved import move_state, with_moved
from rlkernel.evaluator.judging.references.traced_reference import TracedReference
from rlkernel.evaluator.messages.judgement import Moved
from rlkernel.reference import Reference, load_reference

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(16, 4, bias={bias})
        self.weight = nn.Parameter(torch.randn(4, 16))

    def forward(self, x):
        chosen = {chosen}
        out = torch.zeros_like(x)
        for i in range(4):
            {expert}
        return out

def get_inputs():
    return [torch.randn(64, 16)]

def get_init_inputs():
    return []
"""
GATE = "self.gate(x).argmax(-1)"
MASK, WHERE = "out[chosen == i] = x[chosen == i] * self.weight[i]", "out += torch.where(chosen == i, 1.0, 0.0)[:, None] * x"


def experts(chosen: str = GATE, expert: str = MASK, *, bias: bool = True) -> Reference:
    return load_reference(SOURCE.format(chosen=chosen, expert=expert, bias=bias), small=False)


@pytest.mark.parametrize("expert", [MASK, WHERE])
def test_a_bias_of_a_gate_lets_one_expert_take_all(expert: str) -> None:
    """Of normal tokens the gate's logits are about 0.6 apart, so that a bias of 3 is nearly always the largest."""
    reference = experts(expert=expert)
    [what] = crowded_of(reference)
    assert (what.name, what.part, what.parts) == ("gate.bias", 2, 4) and what.shift >= 3.0
    model = move_state(reference.model(0), what)
    chosen = model.gate(reference.inputs(0)[0]).argmax(-1)
    assert (chosen == 2).sum() >= 60


def test_without_a_bias_an_input_is_moved() -> None:
    reference = experts(bias=False)
    [what] = crowded_of(reference)
    assert what.place == 0
    [x] = with_moved(reference.inputs(0), what)
    assert torch.bincount(reference.model(0).gate(x).argmax(-1)).max() >= 48


SCORES = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, scores):
        return {answer}

def get_inputs():
    return [torch.randn(256, 8)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    "answer",
    [
        "torch.zeros(8).index_add(0, scores.argmax(-1), scores.amax(-1))",
        "torch.zeros_like(scores).scatter(1, scores.argmax(-1, keepdim=True), 1.0).cumsum(0)",
        "torch.zeros(8).scatter_add(0, scores.argmax(-1), scores.amax(-1))",
    ],
)
def test_a_column_of_scores_that_are_given_is_moved_where_a_reference_scatters_by_choices(answer: str) -> None:
    reference = load_reference(SCORES.format(answer=answer), small=False)
    assert may_crowd(TracedReference(reference, PROFILES["h200"]).program)
    [what] = crowded_of(reference)
    assert (what.place, what.part, what.parts, what.axis) == (0, 4, 8, -1)
    [scores] = with_moved(reference.inputs(0), what)
    assert (scores.argmax(-1) == 4).sum() >= 192
    [usual] = reference.inputs(0)
    assert torch.equal(scores[:, :4], usual[:, :4]) and torch.equal(scores[:, 5:], usual[:, 5:])


def test_nothing_is_moved_where_what_is_given_says_by_what_is_scattered() -> None:
    source = SCORES.format(answer="torch.zeros(8).index_add(0, places, scores[:, 0])")
    source = source.replace("self, scores", "self, scores, places").replace("8)]", "8), torch.randint(0, 8, (256,))]")
    assert crowded_of(load_reference(source, small=False)) == ()


@pytest.mark.parametrize(
    "chosen",
    [
        "torch.arange(64) % 4",  # whatever is given
        "torch.zeros(64, dtype=torch.int64)",  # all of it as it is
        "x[:, :4].argsort(-1)[:, 0] if x.max() < 2 else torch.arange(64) % 4",  # what would crowd is not what is moved
    ],
)
def test_nothing_is_moved_where_that_crowds_nothing(chosen: str) -> None:
    assert crowded_of(experts(chosen)) == ()


@pytest.mark.parametrize(("expert", "may"), [(MASK, True), (WHERE, True), ("out += x * self.weight[i]", False)])
def test_only_what_chooses_is_looked_at(expert: str, may: bool) -> None:
    assert may_crowd(TracedReference(experts(expert=expert), PROFILES["h200"]).program) is may


def test_what_is_not_borne_is_not_taken() -> None:
    fussy = experts(expert="out[chosen == i] = x[chosen == i] / (x.abs().max() < 4.5).float()", bias=False)
    assert all(isinstance(what, Moved) and what.shift in (3.0, -3.0) for what in crowded_of(fussy))
