"""Whether a reference bears inputs that its author does not draw."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.evaluator.judging.inputs.bearing import FEWEST, MOST_TIMES, Origins, usual_call
from rlkernel.evaluator.judging.inputs.effects import Watching
from rlkernel.evaluator.judging.inputs.unshown import plants_of
from rlkernel.reference import load_reference

SOURCE = """
import torch
import torch.nn as nn
class Model(nn.Module):
    def forward(self, x):
        x = torch.nan_to_num(x) if {replaces} else x + torch.nan_to_num(x)
        while not bool((x.abs() <= 1.0).all()):
            x = x / 2
        return x
def get_inputs():
    return [torch.randn(8, 8)]
def get_init_inputs():
    return []
"""


class Halved(nn.Module):
    """A forward that halves what it is given until it is below 1."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while not bool((x <= 1.0).all()):
            self.calls, x = self.calls + 1, x / 2
        return x


def test_a_call_that_would_never_end_is_stopped() -> None:
    """Each turn is four operators: a comparison, whether all are, its value, and a half."""
    model = Halved()
    usual = usual_call(model, [torch.full((4,), 8.0)])
    assert (usual.kinds, usual.operators, model.calls) == ([(torch.Size([4]), True)], 15, 3)
    model.calls = 0
    assert not usual.ends(model, [torch.full((4,), torch.nan)])
    assert (MOST_TIMES * 15 + FEWEST - 4) // 4 <= model.calls <= (MOST_TIMES * 15 + FEWEST) // 4
    assert usual.borne(model, [torch.full((4,), 2.0**40)])


def test_what_is_no_longer_finite_ends_and_is_not_borne() -> None:
    usual = usual_call(nn.Identity(), [torch.ones(2)])
    assert usual.ends(nn.Identity(), lambda: [torch.full((2,), torch.inf)])
    assert not usual.borne(nn.Identity(), lambda: [torch.full((2,), torch.inf)])
    assert not usual.ends(nn.Identity(), lambda: [torch.ones(2) / torch.ones(3)])


def test_operators_of_what_watches_a_call_are_not_counted() -> None:
    """A running maximum over many rows, each of which `Watching` looks at by a dozen operators."""

    class Running(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            found = x[0]
            for row in x.unbind():
                found = torch.maximum(found, row)
            return found

    x = torch.randn(FEWEST // 2, 8)
    usual, watched = (usual_call(Running(), [x], watching) for watching in (None, Watching([x])))
    assert usual.operators == watched.operators
    assert usual.borne(Running(), [x], Watching([x]))


@pytest.mark.parametrize(("replaces", "planted"), [(True, 1), (False, 0)])
def test_nan_is_planted_only_where_the_reference_ends(replaces: bool, planted: int) -> None:
    source = SOURCE.format(replaces=replaces)
    assert (
        len([one for one in plants_of(load_reference(source, small=False, name="p"), source) if "nan" in repr(one.values)])
        == planted
    )


def test_what_is_made_element_by_element_has_its_inputs_as_origins() -> None:
    x, y, weight = torch.randn(4, 8), torch.randn(4, 8), torch.randn(8)
    origins, aten = Origins([x, y]), torch.ops.aten

    def made(func: Any, *operands: Any) -> torch.Tensor:
        result: torch.Tensor = func(*operands)
        origins.note(func, operands, result)
        return result

    squashed, both = made(aten.tanh.default, made(aten.mul.Tensor, x, weight)), made(aten.add.Tensor, x, y)
    assert origins.of(squashed) == 0 and origins.itself(squashed) is None and origins.of(squashed[:2]) == 0
    assert origins.of(both) is None and origins.all_of(both) == {0, 1}
    assert origins.itself(x.t()) == 0 and origins.of(y) == 1 and origins.of(weight) is None
    assert not origins.all_of(made(aten.mm.default, x, y.t())), "a product mixes them"
    assert origins.of(made(aten._softmax.default, y, 1, False)) == 1
    del squashed
    assert all(origins.of(torch.randn(4, 8)) is None for _ in range(8)), "memory that was given up says nothing"
