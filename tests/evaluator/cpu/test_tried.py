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
        self.tried.launch(TUNED, {"x": x}, lambda: x.mul_(0.5))
        return (x,)

    def watched(self, one: float) -> dict[str, torch.Tensor]:
        return {}


@pytest.mark.parametrize(("loads", "shows"), [(("x",), True), (("y",), False)])
def test_a_launch_that_changes_what_it_loads_shows(loads: tuple[str, ...], shows: bool) -> None:
    tried = Tried(PROGRAM, {"text": Touched(("x",), loads)})
    (left,) = Halving(tried).call(8.0)
    assert left.tolist() == [4.0] * 4
    assert tried.shows(MACHINE, lambda: Halving(tried), 8.0, (left, {}), 1e6) is shows
    assert Halving(tried).call(8.0)[0].tolist() == [4.0] * 4  # later calls are steady ones


@pytest.mark.parametrize(("error", "shows"), [(OutOfBounds, True), (TooMuchWork, False)])
def test_a_first_call_that_fails_shows_unless_it_is_too_much_work(error: type[Exception], shows: bool) -> None:
    tried = Tried(PROGRAM, {"text": Touched(("x",), ("x",))})
    (left,) = Halving(tried).call(8.0)
    assert tried.shows(MACHINE, lambda: Halving(tried, error), 8.0, left, 1e6) is shows
