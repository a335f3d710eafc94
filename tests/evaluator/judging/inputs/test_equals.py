"""Numbers that differ in every draw: which inputs have them, and what is put in their place."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.equals import MEET, limited, meeting, repeated, repeats_of
from rlkernel.evaluator.messages.judgement import Repeated
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, rows, perm, named):
        return {answer}

def get_inputs():
    return [torch.randn(64, 8), torch.randperm(640)[:64], torch.randperm(64), torch.randint(0, 2000, (64,))]

def get_init_inputs():
    return []
"""


def reference(answer: str) -> Reference:
    return load_reference(SOURCE.format(answer=answer), small=False)


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("torch.zeros(640, 8).index_add(0, rows, x)", [(1, 0)]),
        ("torch.zeros(640, 8).index_put((rows,), x, accumulate=True)", [(1, 0)]),
        ("torch.zeros(640).scatter_add(0, rows, x[:, 0])", [(1, 0)]),
        ("torch.zeros(640).scatter_reduce(0, rows, x[:, 0], 'amax')", [(1, 0)]),
        ("torch.zeros(8, 640).scatter_add(1, rows.view(1, -1).expand(8, -1), x.t())", [(1, 0)]),  # the input's axis
        ("torch.zeros(640, 8).index_add(0, rows.view(2, 32)[0], x[:32])", []),  # a part of an input
        ("torch.zeros(640, 8).index_copy(0, rows, x)", []),  # which is left open where indices meet
        ("torch.ones(2000, 8).index_copy(0, named, 2 * torch.ones(2000, 8)[named])", [(3, 0)]),  # which stores the same for all
        ("torch.ones(2000).index_put((named,), torch.arange(2000.0)[named])", [(3, 0)]),
        ("torch.ones(2000).index_put((named,), x[:, 0])", []),
        ("torch.ones(2000).scatter(0, named, torch.arange(2000.0)[named])", [(3, 0)]),
        ("torch.ones(2000).scatter(0, named, 3.0)", [(3, 0)]),
        ("torch.ones(2000).scatter(0, named, x[:, 0])", []),
        ("torch.ones(640).scatter(0, rows, 3.0)", []),  # which are different in every draw
        ("torch.zeros(640, 8).index_add(0, rows, x) + torch.zeros(640, 8).index_copy(0, rows, x)", []),
        ("torch.zeros(64, 8).index_add(0, perm, x)", []),  # a permutation stays one
        ("torch.zeros(640, 8).index_add(0, rows * 0, x)", []),  # they meet as it is
        ("x[perm] + x", []),
        ("x.argmax(1)", [(0, None)]),
        ("x.min(1)[1]", [(0, None)]),
        ("x.sort(stable=True)[1]", [(0, None)]),
        ("x.sort(1)[1]", []),  # which is left open
        ("x.topk(2)[1]", []),
        ("x.topk(2)", []),
        ("x.topk(2)[0] + x.topk(2)[1]", []),
        ("x.topk(2)[0].exp()", [(0, None)]),
        ("x.sort(1)[0] + x.kthvalue(3, 1, keepdim=True)[0]", [(0, None)]),
        ("x.max() + x", []),
        ("x.argmax(1) + x.topk(2)[1].sum(1)", []),  # any of equal ones may be taken, and is given back
        ("torch.cummax(x, 1)[1]", [(0, None)]),
        ("torch.cummin(x, 1)[1] + x", [(0, None)]),
        ("torch.cummax(x, 1)[0] + x", []),  # nothing is made of where they lie
        ("nn.functional.max_pool2d(x[None], 2, return_indices=True)", [(0, None)]),
        ("nn.functional.max_pool2d(x[None], 2)", []),
        ("(2 * torch.tanh(x)).argmax(1)", [(0, None)]),  # equal where x is
        ("x.softmax(1).argmax(1)", [(0, None)]),
        ("(x @ x.t()).argmax(1)", []),
        ("(x + x.flip(0)).cumsum(1).argmax(1)", []),
        ("(x[:, None] < x[:, :, None]).sum(-1)", [(0, None)]),
        ("(x == x.amax(1, keepdim=True)) * x", [(0, None)]),
        ("(x != x) + x", []),  # which asks for NaN
        ("(x < x.mean()) * x", []),
    ],
)
def test_which_inputs_repeat_numbers(answer: str, found: list[tuple[int, int | None]]) -> None:
    assert [(one.place, one.axis) for one in repeats_of(reference(answer))] == found


def test_indices_meet_along_an_axis_at_places_of_the_seed() -> None:
    given = torch.arange(256).expand(2, 256)
    found = meeting(given, 1, 3)
    assert all(bool((meeting(given, 1, seed).diff(dim=1) >= 0).all()) for seed in range(16)), "what is in order stays so"
    assert torch.equal(found, meeting(given, 1, 3)) and not torch.equal(found, meeting(given, 1, 4))
    moved = found != given
    assert 0.1 < float(moved.float().mean()) < 0.4 and torch.equal(found[moved], given.roll(1, 1)[moved])
    assert all(len(row.unique()) < 256 for row in found)
    assert len(meeting(torch.tensor([5, 9]), 0, 1).unique()) == 1, "one at least"


def test_numbers_are_limited_to_their_eighths() -> None:
    found = limited(torch.arange(65).float().view(5, 13))
    assert found.min() == 8 and found.max() == 56 and int((found == 8).sum()) == 9 == int((found == 56).sum())


def test_the_others_and_the_layout_stay() -> None:
    given = [torch.randn(8, 4).t(), torch.randn(3)]
    found = repeated(given, Repeated(0, None), 1)
    assert found[1] is given[1] and found[0].stride() == (1, 4) and not torch.equal(found[0], given[0])


def test_indices_meet_in_a_round_of_their_own() -> None:
    adds = reference("torch.zeros(640, 8).index_add(0, rows, x)")
    rounds = [r for some in draw_rounds(adds, Precision.PYTORCH, "key", other=False, plants=repeats_of(adds)) for r in some]
    meets = [MEET in one.expected.note for one in rounds]
    assert sum(meets) == 1 and meets == [len(one.inputs[1].unique()) < 64 for one in rounds]


@pytest.mark.parametrize(("names", "meet"), [(2000, True), (100, False)])
def test_indices_that_hardly_ever_meet_do_whatever_is_drawn(names: int, meet: bool) -> None:
    """Of 64 among 2,000 two are equal in most draws, by chance; of 64 among 100 about 18 are in each."""
    source = SOURCE.replace("torch.randperm(640)[:64]", f"torch.randint(0, {names}, (64,))").format(
        answer="torch.zeros(2000, 8).index_add(0, rows, x)"
    )
    found = repeats_of(load_reference(source, small=False))
    assert (Repeated(1, 0) in found) == meet
