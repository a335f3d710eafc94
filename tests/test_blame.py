"""A bug in a method of the user's own is told once, from the method on; one of ours keeps its whole traceback."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
import torch

from algorithms.pr import PR
from algorithms.uniform_credit import UniformCredit
from rlkernel.blame import bug_of_a_method
from rlkernel.errors import exit_status
from rlkernel.training.batch import turn_advantages
from rlkernel.types import Evaluation, Turn
from tests.algorithms.groups import group, turn

HERE = Path(__file__)


def line_of(text: str) -> int:
    """The number of the one line of this file that ends in the text."""
    (number,) = [i for i, line in enumerate(HERE.read_text().splitlines(), 1) if line.endswith(text)]
    return number


@dataclass(frozen=True)
class Raises:
    inside: bool = False

    def __call__(self, returns_GKT: Any, valid_GKT: Any) -> Any:
        return torch.zeros(2) @ torch.zeros(3) if self.inside else helper(returns_GKT)  # the method


def helper(returns_GKT: Any) -> Any:
    return returns_GKT.nosuch()  # the bug


def call(advantage: Any) -> list[torch.Tensor]:
    """Calls an estimator as the trainer does."""
    valid_GKT = torch.ones(1, 2, 1, dtype=torch.bool)
    groups = [group([turn()], [turn()])]
    return turn_advantages(
        groups, advantage=advantage, credit=UniformCredit(), gamma=1.0, baseline_GKT=valid_GKT, counted_GKT=valid_GKT
    )


def as_tasks(call: Any) -> None:
    """Calls in a task group in a task group, as training does."""

    async def task() -> None:
        call()

    async def outer() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(inner)

    async def inner() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(task)

    anyio.run(outer)


def test_an_estimators_bug_is_one_line_and_its_own_traceback_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_status(lambda: as_tasks(lambda: call(Raises()))) == 1
    told, *lines = capsys.readouterr().err.splitlines()
    at = f"{HERE}:{line_of('# the bug')}".removeprefix(f"{Path.cwd()}/")
    assert told == f"error: Raises raised AttributeError: 'Tensor' object has no attribute 'nosuch' ({at})"
    assert [line.split(", ")[1] for line in lines if line.startswith("  File")] == [
        f"line {line_of('# the method')}",
        f"line {line_of('# the bug')}",
    ]
    assert len(lines) <= 6


def test_what_a_library_raises_in_a_method_is_told_at_the_methods_line() -> None:
    with pytest.raises(RuntimeError) as raised:
        call(Raises(inside=True))
    told = bug_of_a_method(raised.value)
    assert told is not None and told.startswith("Raises raised RuntimeError: ")
    assert f":{line_of('# the method')})" in told.splitlines()[0]
    assert "site-packages" not in told


@dataclass(frozen=True)
class OfAReward:
    """A reward whose bug is met behind a registered one."""

    def __call__(self, evaluation: Evaluation) -> float:
        return evaluation.speeds  # type: ignore[attr-defined,no-any-return]


def test_the_innermost_method_is_named() -> None:
    @dataclass(frozen=True)
    class Behind:
        def rewards(self, turn: Turn) -> tuple[float, ...]:
            return (PR(inner=OfAReward())(turn.evaluation),)

    with pytest.raises(AttributeError) as raised:
        valid_GKT = torch.ones(1, 1, 1, dtype=torch.bool)
        turn_advantages(
            [group([turn()])], advantage=Raises(), credit=Behind(), gamma=1.0, baseline_GKT=valid_GKT, counted_GKT=valid_GKT
        )  # type: ignore[arg-type]
    told = bug_of_a_method(raised.value)
    assert told is not None and told.startswith("OfAReward raised AttributeError: ")


def test_our_own_bugs_keep_their_traceback() -> None:
    with pytest.raises(AttributeError) as raised:
        turn_advantages([1], advantage=None, credit=None, gamma=1.0, baseline_GKT=None, counted_GKT=None)  # type: ignore
    assert bug_of_a_method(raised.value) is None
    with pytest.raises(AttributeError) as own:
        helper(1)  # nobody of ours has called it
    assert bug_of_a_method(own.value) is None
    with pytest.raises(ExceptionGroup):  # beside a bug of ours
        exit_status(lambda: as_tasks(lambda: (_ for _ in ()).throw(ExceptionGroup("", [own.value, KeyError(1)]))))
