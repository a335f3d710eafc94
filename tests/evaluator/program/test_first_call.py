"""What an autotuned launch does in the first call of forward."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from rlkernel.evaluator.program.first_call import Touched, as_first, may_show
from rlkernel.evaluator.program.schema import Launch, Tuning

IN_PLACE = Touched(("x",), ("x", "w"))
"""A kernel that stores through x, and loads through x and w."""


def launch(tuning: Tuning | None) -> Launch:
    return Launch(0, {}, (), 1, tuning=tuning)


@pytest.mark.parametrize(
    ("tuning", "touched", "shows"),
    [
        (None, IN_PLACE, False),
        (Tuning(), IN_PLACE, True),
        (Tuning(), Touched(("y",), ("x", "w")), False),
        (Tuning(restored=("x",)), IN_PLACE, False),
        (Tuning(reset=("y",)), Touched(("y",), ("x",)), False),
        (Tuning(reset=("x",)), Touched(("y",), ("x",)), True),
        (Tuning(), Touched(("flat",), ("x",)), True),  # a view of the same memory
    ],
)
def test_tuning_may_show_where_what_is_loaded_is_changed(tuning: Tuning | None, touched: Touched, shows: bool) -> None:
    x = torch.ones(2, 2)
    args: dict[str, Any] = {"x": x, "flat": x.view(-1), "y": torch.ones(4), "w": torch.ones(4), "n": 4}
    assert may_show(launch(tuning), touched, args) is shows


@pytest.mark.parametrize(
    ("tuning", "left"),
    [
        (None, 2.5),  # 3 / 2 + 1
        (Tuning(), 2.25),  # 2.5 / 2 + 1
        (Tuning(restored=("x",)), 2.5),
        (Tuning(reset=("x",)), 1.0),  # 0 / 2 + 1
    ],
)
def test_the_kernel_runs_twice_on_what_is_neither_put_back_nor_reset(tuning: Tuning | None, left: float) -> None:
    x = torch.full((4,), 3.0)
    as_first(launch(tuning), {"x": x, "n": 4}, lambda: x.mul_(0.5).add_(1.0))
    assert x.tolist() == [left] * 4
