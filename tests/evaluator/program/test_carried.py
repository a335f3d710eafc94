"""State that forward replaces is carried from call to call, and compared."""

from __future__ import annotations

import torch
from torch import nn

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.oracle import prepare
from rlkernel.evaluator.judging.reference_calls import call, state_of
from rlkernel.evaluator.program.carried import attributes, carry, carrying, replaced
from rlkernel.evaluator.trace.candidate import trace
from rlkernel.types import Precision

CELL = """
import torch
from torch import nn

B, H = 4, 8

class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = torch.ones(B, H)

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = Cell()
        self.scale = torch.tensor(2.0)
        self.linear = nn.Linear(H, H)

    def forward(self, x):
        self.cell.hidden = torch.tanh(self.linear(x + self.cell.hidden))
        return self.cell.hidden * self.scale

def get_inputs():
    return [torch.randn(B, H)]

def get_init_inputs():
    return []
"""


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.total = torch.zeros(2)
        self.last = torch.zeros(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = x
        self.total = self.total + x
        return self.total


def test_what_is_assigned_lies_in_the_buffer_after_the_call() -> None:
    model = Counter()
    before = attributes(model)
    model(torch.ones(2))
    assert replaced(before, model) == ("total",), "a tensor of another shape is no state"
    model = Counter()
    carry(model, ("total", "not_there"))
    home = model.total
    assert list(state_of(model)) == ["total"]
    for _ in range(3):
        with carrying(model):
            model(torch.tensor([1.0, 10.0]))
    assert model.total is home
    assert home.tolist() == [3.0, 30.0]


def test_both_sides_start_alike_and_the_state_is_compared() -> None:
    problem = prepare(CELL, "cell", H200, Precision.STRICT)
    assert problem.variants[1].carried == ("cell.hidden",)
    assert set(problem.program.state) == {"cell.hidden", "linear.weight", "linear.bias"}
    assert problem.program.forward[-1].op == "aten.copy_.default"  # type: ignore[union-attr]
    (traced,) = trace(CELL.replace("class Model(", "class ModelNew("), H200, problem.variants[1:])
    assert "cell.hidden" in traced.program.state
    model = problem.small.model(0)
    carry(model, problem.variants[1].carried)
    weight, bias, x = model.linear.weight, model.linear.bias, torch.randn(4, 8)  # type: ignore[union-attr]
    wanted = torch.tanh(nn.functional.linear(x + 1.0, weight, bias))  # type: ignore[arg-type]
    assert torch.allclose(call(model, [x], 0), 2 * wanted)
    assert torch.allclose(state_of(model)["cell.hidden"], wanted)
