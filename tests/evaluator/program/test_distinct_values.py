"""Distinct values of which the number is known are those that torch finds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from rlkernel.evaluator.program.distinct_values import DISTINCT, MOST_COLUMNS

ROWS = torch.tensor([[3, 1, 1], [3, 1, 1], [0, 2, 1], [3, 1, 0], [0, 2, 1], [3, 1, 1]])
RUNS = torch.tensor([2.0, 2.0, 0.5, 0.5, 0.5, 2.0])
NONE = torch.tensor([float("nan"), 1.0, float("nan"), 1.0])


def number_of(tensor: torch.Tensor, question: Callable[[torch.Tensor], torch.Tensor]) -> int:
    return int(question(tensor))


@pytest.mark.parametrize("wanted", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("_unique2", (ROWS, True)), ("_unique2", (RUNS, True)), ("_unique2", (ROWS > 1, True)),
        ("_unique2", (torch.tensor(4), True)), ("_unique2", (ROWS.mT, True)),
        ("unique_dim", (ROWS, 0, True)), ("unique_dim", (ROWS, 1, True)),
        ("unique_dim", (ROWS.reshape(2, 3, 3), -1, True)), ("unique_dim", (RUNS, 0, True)), ("unique_consecutive", (RUNS,)),
        ("unique_consecutive", (ROWS,)), ("unique_dim_consecutive", (ROWS, 0)), ("unique_dim_consecutive", (RUNS, 0)),
    ],
)  # fmt: skip
def test_a_known_number_of_values_gives_the_same(name: str, given: tuple[Any, ...], wanted: tuple[bool, bool]) -> None:
    found = DISTINCT[f"aten.{name}.default"](number_of, *given, *wanted)
    own = getattr(torch.ops.aten, name)(*given, *wanted)
    assert found is not None
    compared = [True, *wanted]
    assert all(torch.equal(a, b) for a, b, is_compared in zip(found, own, compared, strict=True) if is_compared)
    assert [t.dtype for t in found] == [t.dtype for t in own]


def test_nan_is_distinct_from_nan() -> None:
    values, _, counts = DISTINCT["aten._unique2.default"](number_of, NONE, True, False, True) or (NONE,) * 3
    assert values.isnan().sum() == 2 and counts.tolist() == [2, 1, 1]


@pytest.mark.parametrize(
    ("name", "given"),
    [("_unique2", (ROWS[:0],)), ("unique_dim", (torch.zeros(2, MOST_COLUMNS + 1), 0)), ("unique_consecutive", (ROWS[:0],))],
)
def test_what_is_empty_or_too_wide_is_left_alone(name: str, given: tuple[Any, ...]) -> None:
    assert DISTINCT[f"aten.{name}.default"](number_of, *given) is None
