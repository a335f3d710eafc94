"""Parameters that are related as they are drawn: which have halves of some numbers, and that the relations are gone."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.references.reference_calls import constants, state_of
from rlkernel.evaluator.judging.references.related import HALVED_SHARE, drawn_weights, give_others, halve_some
from rlkernel.evaluator.program.folding import HALVED
from rlkernel.reference import load_reference
from rlkernel.types import Precision


def twins() -> nn.ModuleDict:
    torch.manual_seed(3)
    one = nn.Linear(64, 32)
    model = nn.ModuleDict({"one": one, "copy": copy.deepcopy(one), "norm": nn.LayerNorm(8), "kept": nn.Linear(8, 8)})
    model["kept"].weight.requires_grad_(False)  # type: ignore[union-attr, operator]
    model.register_buffer("table", torch.randn(8, 8))
    return model


def test_weights_are_drawn_that_are_trained_and_not_the_same_throughout() -> None:
    model = twins()
    found = drawn_weights(model, ("copy.*",), constants(model))
    assert found == ["one.weight", "one.bias", "kept.bias"]


def test_a_quarter_is_halved_and_copies_are_no_copies() -> None:
    model = twins()
    usual = {name: tensor.clone() for name, tensor in state_of(model).items()}
    give_others(model, 7, (), constants(model))
    now = state_of(model)
    weight, before = now["one.weight"], usual["one.weight"]
    halves = weight != before
    assert float(halves.float().mean()) == pytest.approx(HALVED_SHARE, abs=0.03)
    assert torch.equal(weight[halves], HALVED * before[halves])
    assert not torch.equal(weight, now["copy.weight"]) and not torch.equal(now["one.bias"], now["copy.bias"])
    assert all(torch.equal(now[name], usual[name]) for name in ("kept.weight", "table"))
    assert not torch.equal(now["norm.weight"], usual["norm.weight"])


@pytest.mark.parametrize(("numbers", "halved"), [(3, 1), (4, 1), (9, 2), (64, 16)])
def test_most_of_a_small_parameter_stay(numbers: int, halved: int) -> None:
    model = nn.ParameterDict({"a": nn.Parameter(torch.arange(1.0, numbers + 1))})
    halve_some(model, 1, ["a"])
    assert int((model["a"] != torch.arange(1.0, numbers + 1)).sum()) == halved


def test_the_same_seed_halves_the_same_numbers() -> None:
    models = [twins(), twins(), twins()]
    for model, seed in zip(models, (5, 5, 6), strict=True):
        halve_some(model, seed, ["one.weight"])
    first, again, other = (model["one"].weight for model in models)
    assert torch.equal(first, again) and not torch.equal(first, other)  # type: ignore[arg-type]


SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Parameter(torch.empty(16, 16))
        nn.init.orthogonal_(self.turn)

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(8, 16)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("forward", "told"), [("x @ self.turn @ self.turn.t()", True), ("x @ self.turn / (self.turn.det().abs() > 0.999)", False)]
)
def test_a_round_has_other_numbers_where_the_reference_bears_them(forward: str, told: bool) -> None:
    reference = load_reference(SOURCE.replace("{forward}", forward), small=False, name="turned")
    rounds = [one for module in draw_rounds(reference, Precision.PYTORCH, "key", other=False) for one in module]
    turns = [one.state["turn"].double() for one in rounds if one.state]
    misses = [float((turn @ turn.t() - torch.eye(16)).norm()) for turn in turns if float(turn.norm()) < 8]
    assert (max(misses) > 0.5) is told and min(misses) < 1e-5
