"""Problems that equal a held-out one up to names, constants and sizes are found, and no others."""

from __future__ import annotations

import pytest

from benchmarks.tasks import disguised, plain, singles, tasks
from experiments.preparation.filters import Filters, forms_of, judge
from experiments.preparation.looked import Looked
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.messages.survey import Survey
from rlkernel.evaluator.program.normal_form import normal_form
from rlkernel.sources.normal_form import normal_form as form_of_text
from rlkernel.types import Precision, Problem


def looked(problem: Problem) -> Looked:
    """What preparation finds of a problem, apart from what only its values tell; in this process, since we wrote it."""
    found = prepare(problem.source, problem.name, PROFILES["h200"], Precision.PYTORCH)
    ranks = [len(spec.shape) for spec in found.variants[1].specs.inputs]
    return Looked(problem, Survey(form=normal_form(found.program, ranks)), form_of_text(problem.source))


@pytest.mark.slow
def test_20_of_20_in_other_clothes_are_found_and_none_of_200_others() -> None:
    held_out = [*singles(), *tasks(60, seed=1)]
    known = forms_of(looked(plain(task)) for task in held_out)
    hidden = [*held_out[::6], *held_out[1::20]][:20]
    others = tasks(200, seed=2, without=frozenset(held_out))
    assert (len(set(hidden)), len(others)) == (20, 200)
    found = [judge(looked(disguised(task)), Filters(), known) for task in hidden]
    assert [verdict.detail for verdict in found] == [f"it is {plain(task).name} in other clothes" for task in hidden]
    clothes = [plain(task) if k % 2 else disguised(task) for k, task in enumerate(others)]
    wrong = [
        (verdict.looked.problem.name, verdict.detail) for p in clothes if (verdict := judge(looked(p), Filters(), known)).cause
    ]
    assert wrong == []


REFERENCE = """import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, stride=1)
        self.linear = nn.Linear(8, 8)

    def forward(self, x, z):
        return {expression}


def get_inputs():
    return [torch.randn(2, 4, 8, 8), torch.randn(2, 4, 8, 8)]


def get_init_inputs():
    return []
"""


def form(expression: str, constructor: str = "") -> str:
    """The form of the work of an expression in `x` and `z`. constructor: in the place of the convolution's arguments."""
    source = REFERENCE.format(expression=expression)
    source = source.replace("4, 4, 3, stride=1", constructor or "4, 4, 3, stride=1")
    return looked(Problem("p", 1, "train", source)).survey.form


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x.sum()", "x.sum(dim=1)"),
        ("x.sum(dim=1)", "x.mean(dim=1)"),
        ("x + z", "x * z"),
        ("x + z", "x + x"),
        ("x @ z", "z @ x.transpose(-1, -2)"),
        ("self.conv(x)", "F.conv2d(x, self.conv.weight)"),
        ("torch.relu(x)", "torch.relu(x) + x"),
        ("F.max_pool2d(x, 2)", "F.avg_pool2d(x, 2)"),
        ("self.linear(x)", "F.linear(z, x[0, 0])"),
        ("x.amax(1)", "x.amin(1)"),
        ("x.cumsum(1)", "x.cumprod(1)"),
    ],
)
def test_other_work_is_another_task(one: str, other: str) -> None:
    assert form(one) != form(other)


@pytest.mark.slow
def test_a_convolution_in_groups_is_another_task_and_one_of_other_sizes_is_not() -> None:
    plain_form = form("self.conv(x)")
    assert form("self.conv(x)", "4, 4, 3, groups=4") != plain_form
    assert form("self.conv(x)", "4, 16, 5, padding=2, stride=2, dilation=2") == plain_form


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x * 2.0 + 1", "(x * 0.5).add_(3)"),
        ("x.sum(dim=1)", "torch.sum(x, 2)"),
        ("torch.softmax(x, dim=1)", "F.softmax(x, -1)"),
        ("F.max_pool2d(x, 2)", "F.max_pool2d(x, 3, 2, 1)"),
    ],
)
def test_other_numbers_are_the_same_task(one: str, other: str) -> None:
    assert form(one) == form(other)
