"""Attributes that the reference's forward replaces are kept in place on both sides, and compared."""

from __future__ import annotations

import torch
from torch import nn

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.judging.references.reference_calls import call, state_of
from rlkernel.evaluator.program.replaced import attributes, drawn, hold, holding, newly_replaced
from rlkernel.evaluator.program.schema import Op
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
    assert newly_replaced(before, model) == ("total",), "a tensor of another shape is no state"
    model = Counter()
    hold(model, ("total", "not_there"))
    home = model.total
    assert list(state_of(model)) == ["total"]
    for _ in range(3):
        with holding(model):
            model(torch.tensor([1.0, 10.0]))
    assert model.total is home
    assert home.tolist() == [3.0, 30.0]


def test_both_sides_start_alike_and_the_state_is_compared() -> None:
    problem = prepare(CELL, "cell", H200, Precision.STRICT)
    assert problem.variants[1].replaced == ("cell.hidden",)
    assert set(problem.program.state) == {"cell.hidden", "linear.weight", "linear.bias"}
    assert problem.program.forward[-1].op == "aten.copy_.default"  # type: ignore[union-attr]
    (traced,), _ = trace(CELL.replace("class Model(", "class ModelNew("), H200, problem.variants[1:])
    assert "cell.hidden" in traced.program.state
    model = problem.small.model(0)
    hold(model, problem.variants[1].replaced)
    weight, bias, x = model.linear.weight, model.linear.bias, torch.randn(4, 8)  # type: ignore[union-attr]
    wanted = torch.tanh(nn.functional.linear(x + 1.0, weight, bias))  # type: ignore[arg-type]
    assert torch.allclose(call(model, [x], 0), 2 * wanted)
    assert torch.allclose(state_of(model)["cell.hidden"], wanted)


def test_what_a_candidate_replaces_besides_is_carried_without_a_copy() -> None:
    problem = prepare(CELL, "cell", H200, Precision.STRICT)
    counting = CELL.replace("class Model(", "class ModelNew(").replace(
        "        return self.cell.hidden", "        self.scale = self.scale * 1.0\n        return self.cell.hidden"
    )
    (traced,), _ = trace(counting, H200, problem.variants[1:])
    copies = [step for step in traced.program.forward if isinstance(step, Op) and step.op == "aten.copy_.default"]
    assert len(traced.program.carried) == len(copies) == 1
    assert traced.program.state["cell.hidden"] not in traced.program.carried


def test_what_is_drawn_is_told_from_constants_and_buffers() -> None:
    class Tables(nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            generator = torch.Generator().manual_seed(seed)
            self.table, self.order = torch.randn(4, generator=generator), torch.randperm(50, generator=generator)
            self.scale, self.rows = torch.tensor(2.0), torch.ones(seed)
            self.register_buffer("known", torch.randn(4, generator=generator))
            self.linear = nn.Linear(4, 4)

    assert drawn(Tables(1), Tables(2)) == ("table", "order")  # rows has another size, and is no answer to anything
    assert drawn(Tables(1), Tables(1)) == ()
    tables = Tables(1)
    hold(tables, drawn(tables, Tables(2)))
    assert set(state_of(tables)) == {"table", "order", "known", "linear.weight", "linear.bias"}
