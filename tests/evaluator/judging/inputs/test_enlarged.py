"""Whole numbers that may be larger than any draw, and indices that may never be named."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.inputs.emptied import EMPTY, emptied
from rlkernel.evaluator.judging.inputs.enlarged import LARGER, enlarged, enlarged_of
from rlkernel.evaluator.judging.inputs.equals import repeats_of
from rlkernel.evaluator.messages.judgement import Emptied, Enlarged
from rlkernel.reference import Reference, load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def forward(self, x, a, rows):
        return {answer}

def get_inputs():
    return [torch.randn(64, 8), {a}, torch.randint(0, 16, (64,))]

def get_init_inputs():
    return []
"""
SMALL = "torch.randint(-4, 4, (64, 8), dtype=torch.int8)"
PRICES = "torch.randint(0, 1000, (64, 8), dtype=torch.int32)"


def reference(answer: str, a: str = SMALL) -> Reference:
    return load_reference(SOURCE.format(answer=answer, a=a), small=False)


@pytest.mark.parametrize(
    ("answer", "a", "factor"),
    [
        ("a.int().mm(a.int().t())", SMALL, 8),
        ("(x * a.float().view(64, 8)).sum(1)", SMALL, 8),
        ("(a * a).sum(1)", PRICES.replace("1000", "100"), 8),
        ("(a * a).sum(1)", PRICES.replace("1000", "2500"), 4),  # else half of 32 bits is passed
        ("a.sum(1)", "torch.randint(0, 1 << 19, (64, 8), dtype=torch.int32)", 2),  # else another draw may pass 2^24
        ("a + x", "torch.randint(-128, 128, (64, 8), dtype=torch.int8)", None),  # there is no room
        ("a.float() @ x.t()", "torch.randint(-1, 2, (64, 8))", None),  # signs
        ("x * (a > 1)", SMALL, None),
        ("(a & 7) + a", SMALL, None),
        ("x / (a.float() + 9)", SMALL, None),
        ("(a.float() * 0.1).exp()", SMALL, None),
        ("x.gather(1, a.long().abs())", SMALL, None),
        ("x", SMALL, None),
    ],
)
def test_which_whole_numbers_may_be_larger(answer: str, a: str, factor: int | None) -> None:
    assert enlarged_of(reference(answer, a)) == ((Enlarged(1, factor),) if factor else ())


def test_larger_numbers_keep_their_signs_and_their_zeros() -> None:
    given = torch.randint(-4, 4, (1000,), dtype=torch.int8)
    (made,) = enlarged([given], Enlarged(0, 8), 3)
    assert made.dtype is torch.int8 and torch.equal(made.sign(), given.sign())
    assert torch.equal(made.abs() // 8, given.abs()) and int((made % 8 != 0).sum()) > 500
    assert torch.equal(made, enlarged([given], Enlarged(0, 8), 3)[0])


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("torch.zeros(16, 8).index_add(0, rows, x)", True),
        ("torch.zeros(16, 8).scatter_reduce(0, rows[:, None].expand(-1, 8), x, 'amax', include_self=False)", True),
        ("torch.zeros(16, 8).index_add(0, rows, x) / torch.zeros(16).index_add(0, rows, x[:, 0] * 0 + 1)[:, None]", False),
        ("torch.zeros(16, 8).index_copy(0, rows, x)", False),
        ("x[rows]", False),
    ],
)
def test_which_indices_may_never_be_named(answer: str, found: bool) -> None:
    assert (Emptied(2) in repeats_of(reference(answer))) == found


@pytest.mark.parametrize("given", ["torch.bincount(rows, minlength=16)", "torch.bincount(rows, minlength=16).cumsum(0)"])
def test_indices_stay_where_another_input_says_how_many_rows_each_has(given: str) -> None:
    """A kernel may go by that, and would be told of rows that are another index's."""
    source = SOURCE.format(answer="torch.zeros(16, 8).index_add(0, rows, x) + a[:, None]", a=given)
    drawn = source.replace("    return [torch.randn", "    rows = torch.randint(0, 16, (64,))\n    return [torch.randn", 1)
    drawn = drawn.replace("torch.randint(0, 16, (64,))]", "rows]")
    assert Emptied(2) not in repeats_of(load_reference(drawn, small=False))


@pytest.mark.parametrize("seed", range(8))
def test_one_of_the_fewest_indices_is_left_out_whatever_the_seed(seed: int) -> None:
    (made,) = emptied([torch.arange(4).repeat(3)], Emptied(0), seed)
    assert len(made.unique()) == 3 and 0 in made


@pytest.mark.parametrize("seed", range(8))
def test_indices_that_are_left_out_become_others_in_the_same_order(seed: int) -> None:
    given = torch.randint(0, 40, (400,)).sort().values
    (made,) = emptied([given], Emptied(0), seed)
    assert set(made.tolist()) < set(given.tolist()) and bool((made.diff() >= 0).all())
    assert 27 <= len(made.unique()) <= 33


@pytest.mark.parametrize(
    ("answer", "note"), [("torch.zeros(16, 8).index_add(0, rows, x)", EMPTY), ("a.int().mm(a.int().t())", LARGER)]
)
def test_there_is_a_round_of_each(answer: str, note: str) -> None:
    plants = (*repeats_of(given := reference(answer)), *enlarged_of(given))
    rounds = [one for made in draw_rounds(given, Precision.PYTORCH, "key", other=False, plants=plants) for one in made]
    assert [one.expected.note for one in rounds].count(f" ({note})") == 1
