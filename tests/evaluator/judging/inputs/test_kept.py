"""Gates that keep, for references that forget what is far away."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.kept import kept_of, may_forget
from rlkernel.evaluator.judging.inputs.moved import NOTE
from rlkernel.evaluator.judging.references.traced_reference import TracedReference
from rlkernel.evaluator.messages.judgement import Moved
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = nn.Parameter({parameter})

    def forward(self, x, g):
        {before}
        h, out = torch.zeros_like(x[0]), []
        for t in range(len(x)):
            h = {step}
            out.append(h)
        return torch.stack(out)

def get_inputs():
    return [torch.randn(64, 8), {gate}]

def get_init_inputs():
    return []
"""


def recurrence(
    step: str, *, gate: str = "torch.randn(64, 8)", before: str = "pass", parameter: str = "torch.randn(8)"
) -> Reference:  # fmt: skip
    source = SOURCE.format(step=step, gate=gate, before=before, parameter=parameter)
    return load_reference(source, small=False)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        (recurrence("a[t] * h + (1 - a[t]) * x[t]", before="a = torch.sigmoid(g)"), Moved(1, shift=6.0)),
        (recurrence("a[t] * h + x[t]", before="a = torch.exp(-F.softplus(g))"), Moved(1, shift=-6.0)),
        (recurrence("g[t] * h + x[t]", gate="torch.rand(64, 8)"), Moved(1, scale=2.0**-8, shift=1 - 2.0**-8)),
        (recurrence("torch.exp(g[t]) * h + x[t]", gate="-0.5 - torch.rand(64, 8)"), Moved(1, scale=2.0**-8)),
        (recurrence("a * h + x[t]", before="a = torch.sigmoid(self.p)"), Moved(None, "p", shift=3.0)),
        (recurrence("0.5 * h + x[t]"), None),  # whatever is given, a window is right
        (recurrence("h + x[t]"), None),  # nothing is forgotten
        (recurrence("g[t] * x[t]"), None),  # nothing is handed on
        (recurrence("torch.tanh(h) + x[t]"), Moved(0, scale=2.0**-8)),  # of small numbers it keeps all
    ],
)
def test_what_makes_a_gate_keep(reference: Reference, found: Moved | None) -> None:
    assert kept_of(reference) == (() if found is None else (found,))


def test_a_layer_keeps_by_the_bias_of_one_gate() -> None:
    """All biases of an LSTM moved at once would leave nothing but ones."""
    source = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(8, 8)

    def forward(self, x):
        return self.layer(x)[0]

def get_inputs():
    return [torch.randn(64, 2, 8)]

def get_init_inputs():
    return []
"""
    (found,) = kept_of(load_reference(source, small=False))
    assert found.name == "layer.bias_ih_l0" and (found.part, found.parts) == (1, 4)


@pytest.mark.parametrize(
    ("answer", "may"),
    [
        ("x * torch.sigmoid(g)", False),
        ("torch.softmax(x @ g.t(), 1)", False),
        ("torch.cumsum(x, 0) * g", True),
        ("torch.stack([row * g[0] for row in x])", True),
    ],
)
def test_which_references_are_looked_at(answer: str, may: bool) -> None:
    source = SOURCE.format(step="x[t]", gate="torch.randn(64, 8)", before=f"return {answer}", parameter="torch.randn(8)")
    program = TracedReference(load_reference(source, small=False), PROFILES["h200"]).program
    assert may_forget(program) == may


def test_there_is_a_round_in_which_they_keep_in_both_kinds_of_place() -> None:
    for reference in (
        recurrence("a[t] * h + x[t]", before="a = torch.sigmoid(g)"),
        recurrence("a * h + x[t]", before="a = torch.sigmoid(self.p)"),
    ):
        plants = kept_of(reference)
        made = draw_rounds(reference, Precision.PYTORCH, "key", other=False, plants=plants)
        noted = [one for rounds in made for one in rounds if one.expected.note == f" ({NOTE})"]
        assert len(noted) == 1
        moved = noted[0].state["p"] if plants[0].place is None else noted[0].inputs[1]
        assert float(moved.mean()) > 1.5
