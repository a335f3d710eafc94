"""Whether it shows that autotuners have run kernels before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.pace import TooMuchWork
from rlkernel.evaluator.cpu.tried import Tried
from rlkernel.evaluator.program.first_call import Touched
from rlkernel.evaluator.program.schema import Function, Launch, Program, Tuning

PROGRAM = Program((Function("kernel", "text", 1, {}),), (), (), {}, (), (), None)
MACHINE: Any = SimpleNamespace(pace=None)
"""Only its pace is asked for; a real one would patch Triton's language for this process."""


def all_written(start: int) -> bool:
    """Whether the launch left a part unwritten of the storage that begins there: of none."""
    return False


TUNED = Launch(0, {}, (), 1, tuning=Tuning())


class Halving:
    """A module whose only launch halves its input where it lies."""

    def __init__(self, tried: Tried, error: type[Exception] | None = None) -> None:
        self.tried = tried
        self.error = error

    def call(self, one: float) -> tuple[torch.Tensor]:
        if self.error is not None:
            raise self.error("astray")
        x = torch.full((4,), one)
        self.tried.launch(TUNED, {"x": x}, lambda: x.mul_(0.5), list)
        return (x,)

    def watched(self, one: float) -> dict[str, torch.Tensor]:
        return {}


@pytest.mark.parametrize(("loads", "shows"), [(("x",), True), (("y",), False)])
def test_a_launch_that_changes_what_it_loads_shows(loads: tuple[str, ...], shows: bool) -> None:
    tried = Tried(PROGRAM, {"text": Touched(("x",), loads)}, all_written)
    (left,) = Halving(tried).call(8.0)
    assert left.tolist() == [4.0] * 4
    assert tried.shows(MACHINE, lambda: Halving(tried), 8.0, (left, {}), 1e6) is shows
    assert Halving(tried).call(8.0)[0].tolist() == [4.0] * 4  # later calls are steady ones


@pytest.mark.parametrize(("error", "shows"), [(OutOfBounds, True), (TooMuchWork, False)])
def test_a_first_call_that_fails_shows_unless_it_is_too_much_work(error: type[Exception], shows: bool) -> None:
    tried = Tried(PROGRAM, {"text": Touched(("x",), ("x",))}, all_written)
    (left,) = Halving(tried).call(8.0)
    assert tried.shows(MACHINE, lambda: Halving(tried, error), 8.0, left, 1e6) is shows


class Parts:
    """A module whose only launch writes one of two numbers, where another configuration writes both."""

    def __init__(self, tried: Tried, error: type[Exception] | None = None) -> None:
        self.tried = tried
        self.error = error

    def call(self, one: float) -> tuple[torch.Tensor]:
        parts = torch.zeros(2)

        def both() -> None:
            parts.fill_(one)
            if self.error is not None:
                raise self.error("not for this size")

        self.tried.launch(TUNED, {"x": parts}, lambda: parts[:1].fill_(one), lambda: [both])
        return (parts,)

    def watched(self, one: float) -> dict[str, torch.Tensor]:
        return {}


class SlowBeside(Halving):
    """The same, of which another configuration is too much work."""

    def call(self, one: float) -> tuple[torch.Tensor]:
        x = torch.full((4,), one)

        def slow() -> None:
            raise TooMuchWork

        self.tried.launch(TUNED, {"x": x}, lambda: x.mul_(0.5), lambda: [slow])
        return (x,)


def test_another_configuration_that_is_too_much_work_excuses_nothing() -> None:
    tried = Tried(PROGRAM, {"text": Touched(("x",), ("x",))}, all_written)
    (left,) = SlowBeside(tried).call(8.0)
    for _ in range(2):  # each first call tries them
        assert tried.shows(MACHINE, lambda: SlowBeside(tried), 8.0, (left, {}), 1e6)


@pytest.mark.parametrize("unwritten", [True, False])
@pytest.mark.parametrize("error", [None, OutOfBounds])
def test_what_another_configuration_leaves_shows_where_a_part_stays_unwritten(
    unwritten: bool, error: type[Exception] | None
) -> None:  # fmt: skip
    tried = Tried(PROGRAM, {"text": Touched(("x",), ())}, lambda start: unwritten)
    (left,) = Parts(tried).call(8.0)
    assert left.tolist() == [8.0, 0.0]
    shows = tried.shows(MACHINE, lambda: Parts(tried, error), 8.0, (left, {}), 1e6)
    assert shows is (unwritten and error is None)
