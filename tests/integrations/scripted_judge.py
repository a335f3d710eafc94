"""An evaluator whose verdict stands in the code, and that can wait for company."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import anyio

from rlkernel.errors import BrokenReference
from rlkernel.types import Evaluation, Problem, Status


@dataclass
class Judge:
    """Speedup is the code's last number; all that are asked together are in flight together."""

    together: int = 1
    asked: list[Problem] = field(default_factory=list)
    arrived: anyio.Event = field(default_factory=anyio.Event)
    began: threading.Event = field(default_factory=threading.Event)
    """Set when somebody has asked."""
    cancelled: int = 0

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        self.asked.append(problem)
        if len(self.asked) >= self.together:
            self.arrived.set()
        self.began.set()
        try:
            await self.arrived.wait()  # for ever, if the others only came one after the other
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
        if problem.source == "broken":
            raise BrokenReference(f"{problem.name}: no Model")
        if code is None:
            return Evaluation(Status.NO_CODE, "")
        return Evaluation(Status.CORRECT, "", speedup=float(code.split()[-1]))
