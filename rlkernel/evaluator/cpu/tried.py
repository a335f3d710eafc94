"""Whether it shows in a forward's results that autotuners have run its kernels before, as they do in its first call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from rlkernel.evaluator.cpu.beyond import Module, Round, differ
from rlkernel.evaluator.cpu.interpreter import KernelFailed
from rlkernel.evaluator.cpu.machine import Machine
from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.pace import Pace, TooMuchWork
from rlkernel.evaluator.program.first_call import Touched, as_first, kept_by_none, may_show
from rlkernel.evaluator.program.replay import StepFailed
from rlkernel.evaluator.program.schema import Launch, Program

Run = Callable[[], Any]


class Tried:
    """The launches of one Program, each as a steady call makes it or as the first call does."""

    def __init__(self, program: Program, touched: Mapping[str, Touched], leaves: Callable[[int], bool]) -> None:
        """`touched`: by the kernels' texts; leaves: whether the last launch left a part unwritten of the storage that begins at
        an address."""
        self._program = program
        self._leaves = leaves
        self._touched = touched
        self._may_show = False
        self._first_call = False
        self._others = True
        """Whether other configurations are tried in a first call."""

    def launch(self, step: Launch, args: Mapping[str, Any], run: Run, others: Callable[[], Sequence[Run]]) -> None:
        """Make a launch, whose kernel `run` runs once; others: what runs it in each other configuration."""
        touched = self._touched.get(self._program.functions[step.function].source, Touched())
        stored = kept_by_none(step, touched, args)
        if self._first_call:
            as_first(step, args, run, [partial(_if_it_runs, one, stored) for one in others()] if self._others else ())
            return
        self._may_show |= may_show(step, touched, args)
        run()
        if stored and not self._may_show and any(self._leaves(one.untyped_storage().data_ptr()) for one in stored):
            self._may_show = bool(others())

    def shows(self, machine: Machine, made: Callable[[], Module[Round]], one: Round, left: Any, most_work: float) -> bool:
        """Whether the first call of a module leaves something else in a round than this, which a steady call has `left`. Other
        configurations are left out where they are too much work: one that nobody would choose may be."""
        if not self._may_show:
            return False
        self._first_call = True
        try:
            for others in (True, False):
                self._others, machine.pace = others, Pace(most_work)
                try:
                    module = made()
                    return differ(left, (*module.call(one), module.watched(one)))
                except (KernelFailed, OutOfBounds, StepFailed):  # what a kernel has changed before leads it astray
                    return True
                except TooMuchWork:
                    continue
            return False
        finally:
            self._first_call, self._others, machine.pace = False, True, None


def _if_it_runs(run: Run, stored: Sequence[torch.Tensor]) -> None:
    """Try another configuration, which may be none for this size or this card: then it leaves what is `stored` as it was."""
    before = [tensor.clone() for tensor in stored]
    try:
        run()
    except (KernelFailed, OutOfBounds):
        for tensor, value in zip(stored, before, strict=True):
            tensor.copy_(value)
