"""Operators that are told how long their results are give what those give that find it out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlkernel.evaluator.program.value_lengths import BY_VALUES

X = torch.tensor([[0.0, 2.0, 3.0], [4.0, 0.0, 0.0]])
ROWS, MASK, COUNTS = torch.tensor([True, False]), X > 1, torch.tensor([2, 0, 3])


def number_of(tensor: torch.Tensor, question: Callable[[torch.Tensor], torch.Tensor]) -> int:
    return int(question(tensor))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("nonzero.default", (X,)), ("nonzero.default", (X > 9,)), ("index.Tensor", (X, [MASK])),
        ("index.Tensor", (X, [ROWS])), ("index.Tensor", (X, [None, torch.tensor([True, False, True])])),
        ("index.Tensor", (X.repeat(2, 1, 1), [torch.tensor([1, 0, 1]), MASK])),
        ("index_put_.default", (X, [MASK], torch.tensor([7.0, 8.0, 9.0]))),
        ("index_put_.default", (X, [ROWS], torch.tensor([[1.0, 1.0, 1.0]]), True)),
        ("index_put_.default", (X, [MASK], torch.tensor(5.0), True)),
        ("masked_select.default", (X, ROWS[:, None])), ("bincount.default", (COUNTS,)),
        ("bincount.default", (COUNTS, torch.tensor([0.5, 1.0, 2.0]))), ("repeat_interleave.Tensor", (COUNTS,)),
    ],
)  # fmt: skip
def test_a_known_length_gives_the_same(name: str, given: tuple[Any, ...]) -> None:
    packet, overload = name.split(".")
    own = getattr(getattr(torch.ops.aten, packet), overload)
    first, *rest = given
    found = BY_VALUES[f"aten.{name}"](number_of, first.clone(), *rest)
    assert found is not None and torch.equal(found, own(first.clone(), *rest))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("index.Tensor", (X, [torch.tensor([1, 0])])), ("index_put_.default", (X, [MASK], torch.tensor(0.0))),
        ("index_put_.default", (X, [MASK], torch.tensor([0.0]))), ("bincount.default", (COUNTS, None, 8)),
        ("bincount.default", (torch.empty(0, dtype=torch.int64),)),
    ],
)  # fmt: skip
def test_what_no_value_decides_is_left_alone(name: str, given: tuple[Any, ...]) -> None:
    def unknown(*question: Any) -> int:
        raise AssertionError(f"{question} was asked")

    assert BY_VALUES[f"aten.{name}"](unknown, *given) is None
