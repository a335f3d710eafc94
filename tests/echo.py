"""Doubles for whole runs of a tiny random model: what it writes is its code, and the code's hash is its verdict."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from rlkernel.types import Evaluation, Problem, Status


@dataclass(frozen=True)
class EchoEnvironment:
    """The completion's text is the code."""

    def prompt(self, problem: Problem) -> str:
        return problem.name

    def extract(self, completion: str) -> str | None:
        return completion

    def feedback(self, evaluation: Evaluation) -> str:
        return evaluation.detail


@dataclass
class ScriptedEvaluator:
    """The verdict is a function of the code's hash. Fails as our own evaluator would after `fail_after`."""

    fail_after: int = 10**9
    calls: int = 0

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        self.calls += 1
        if self.calls > self.fail_after:
            raise RuntimeError("the evaluator is gone")
        digest = hashlib.sha256((code or "").encode()).digest()
        if digest[0] < 128:
            return Evaluation(Status.CORRECT, "fine", speedup=digest[1] / 100, coverage=digest[2] / 255, timing="modelled")
        return Evaluation((Status.NO_KERNEL, Status.INCORRECT)[digest[3] % 2], "not fine")
