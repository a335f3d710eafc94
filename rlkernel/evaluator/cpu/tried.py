"""Whether it shows in a forward's results that autotuners have run its kernels before, as they do in its first call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlkernel.evaluator.cpu.beyond import Module, Round, differ
from rlkernel.evaluator.cpu.interpreter import KernelFailed
from rlkernel.evaluator.cpu.machine import Machine
from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.pace import Pace, TooMuchWork
from rlkernel.evaluator.program.first_call import Touched, as_first, may_show
from rlkernel.evaluator.program.replay import StepFailed
from rlkernel.evaluator.program.schema import Launch, Program


class Tried:
    """The launches of one Program, each as a steady call makes it or as the first call does."""

    def __init__(self, program: Program, touched: Mapping[str, Touched]) -> None:
        """`touched`: by the kernels' texts."""
        self._program = program
        self._touched = touched
        self._may_show = False
        self._first_call = False

    def launch(self, step: Launch, args: Mapping[str, Any], run: Callable[[], Any]) -> None:
        """Make a launch, whose kernel `run` runs once."""
        if self._first_call:
            as_first(step, args, run)
            return
        touched = self._touched.get(self._program.functions[step.function].source)
        self._may_show |= touched is not None and may_show(step, touched, args)
        run()

    def shows(self, machine: Machine, made: Callable[[], Module[Round]], one: Round, left: Any, most_work: float) -> bool:
        """Whether the first call of a module leaves something else in a round than this, which a steady call has `left`."""
        if not self._may_show:
            return False
        self._first_call, machine.pace = True, Pace(most_work)
        try:
            module = made()
            return differ(left, (*module.call(one), module.watched(one)))
        except (KernelFailed, OutOfBounds, StepFailed):  # what a kernel has changed before leads it astray
            return True
        except TooMuchWork:
            return False
        finally:
            self._first_call, machine.pace = False, None
