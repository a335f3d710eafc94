"""Inputs whose order their last bits decide: where they are looked for, and what is put in their place."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.pressed import LEVELS, NOTE, UNITS, neighbours, pressed, pressed_of
from rlkernel.evaluator.messages.judgement import Pressed
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def forward(self, x, half, places):
        return {answer}

def get_inputs():
    return [torch.randn(64, 8), torch.randn(64, 8).half(), torch.randperm(64)]

def get_init_inputs():
    return []
"""


def reference(answer: str) -> Reference:
    return load_reference(SOURCE.format(answer=answer), small=False)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("x.argmax(1)", [(0, 1)]),
        ("x.argmin()", [(0, None)]),
        ("x.max(0)", [(0, 0)]),
        ("x.max(0)[0]", []),  # no place is used
        ("x.max()", []),
        ("x.topk(2, -2)[1]", [(0, 0)]),
        ("x.gather(1, x.sort(1)[1]) + 1", [(0, 1)]),
        ("x.kthvalue(3)[1], x.cummax(0)[1]", [(0, 1)]),
        ("F.max_pool2d(x[None], 2, return_indices=True)", []),  # a view, which may be a part
        ("x.softmax(1).argmax(1)", []),  # of which roundings may decide
        ("x[1:].argmax(1)", []),
        ("half.argmax(1)", []),
        ("places.argmax()", []),
        ("x[places].argmax(1)", []),
        ("torch.where(x.argmax(1, keepdim=True) > 3, torch.log(-x.amin()), x)", []),  # which is not borne
    ],
)
def test_which_inputs_are_pressed(answer: str, found: list[tuple[int, int | None]]) -> None:
    assert [(one.place, one.axis) for one in pressed_of(reference(answer))] == found


@pytest.mark.parametrize("axis", [0, 1])
def test_the_order_stays_and_neighbours_are_a_few_units_apart(axis: int) -> None:
    given = torch.randn(300, 50)
    found = neighbours(given, axis)
    assert torch.equal(found.argsort(axis), given.argsort(axis))
    apart = found.view(torch.int32).sort(axis).values.diff(dim=axis)
    assert bool((apart == UNITS).all()) and float(found.min()) > 0.99 and float(found.max()) < 1.01


@pytest.mark.parametrize("shape", [(3,), (40, 50), (2, 3, 5, 7)])
def test_of_all_numbers_some_are_equal_and_none_changes_places(shape: tuple[int, ...]) -> None:
    given = torch.randn(shape)
    found = neighbours(given, None)
    assert len(found.unique()) == min(LEVELS, given.numel()) and found.shape == given.shape
    ordered = found.flatten()[given.flatten().argsort()]
    assert bool((ordered.diff() >= 0).all())


def test_the_others_and_the_layout_stay() -> None:
    given = [torch.randn(8, 4).t(), torch.randn(3)]
    found = pressed(given, Pressed(0, 1))
    assert found[1] is given[1] and found[0].stride() == (1, 4) and torch.equal(found[0].argsort(1), given[0].argsort(1))


@pytest.mark.parametrize(
    ("answer", "there"),
    [
        ("x.argmax(1)", True),
        ("x.argmax(1), x + places[:, None]", True),
        ("x.argmax(1), F.layer_norm(x, (8,))", False),  # which magnifies what little the numbers differ by
    ],
)
def test_there_is_a_round_of_its_own_where_the_reference_errs_as_little_in_it(answer: str, there: bool) -> None:
    given = reference(answer)
    rounds = draw_rounds(given, Precision.PYTORCH, "key", other=False, plants=pressed_of(given))
    notes = [NOTE in one.expected.note for some in rounds for one in some]
    assert sum(notes) == there
