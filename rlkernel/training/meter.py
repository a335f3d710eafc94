"""Where a run's wall-clock time goes: of things that overlap, the time in which at least one went on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from rlkernel.busy import Busy

if TYPE_CHECKING:
    from rlkernel.interfaces import Evaluator
    from rlkernel.policy.hf import HFPolicy
    from rlkernel.types import Evaluation, Problem

Numbers = dict[str, float | None]


def overlap(one: Busy, others: Sequence[Busy]) -> Busy:
    """What is busy while `one` and any of the `others` are."""
    both = Busy()

    def watch() -> None:
        together = bool(one.active) and any(other.active for other in others)
        if together != bool(both.active):
            both.begin() if together else both.end()

    for busy in (one, *others):
        busy.watchers.append(watch)
    return both


@dataclass
class MeteredEvaluator:
    """An evaluator that records when it is busy, and how many verdicts it gave."""

    inner: Evaluator
    busy: Busy
    count: int = 0

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        with self.busy():
            evaluation = await self.inner.evaluate(problem, code)
        self.count += 1
        return evaluation


class Meters:
    """The counters of a run, read as what was added since the row before. waited: see `CardEvaluator.waited_seconds`."""

    def __init__(
        self, policy: HFPolicy, evaluator: MeteredEvaluator, waited: Callable[[], tuple[float, float] | None] = lambda: None
    ) -> None:
        self.rollout = Busy()
        """Busy while the trainer waits for a batch."""
        self.training = Busy()
        """Busy from a complete batch to updated weights."""
        self._policy = policy
        self._evaluator = evaluator
        self._hidden = overlap(evaluator.busy, (policy.busy, self.training))
        self._waited = waited
        self._before = self._read()

    def _read(self) -> Numbers:
        candidates, own = self._waited() or (None, None)
        return {
            "seconds_wall": time.perf_counter(),
            "seconds_rollout": self.rollout.seconds,
            "seconds_training": self.training.seconds,
            "seconds_generation": self._policy.busy.seconds,
            "seconds_evaluation": self._evaluator.busy.seconds,
            "seconds_evaluation_hidden": self._hidden.seconds,
            "seconds_gpu_wait_evaluation": candidates,
            "seconds_gpu_wait_policy": own,
            "tokens": self._policy.tokens,
            "verdicts": self._evaluator.count,
        }

    def lap(self) -> Numbers:
        """The meters' part of a row of metrics; docs/metrics.md explains each number."""
        now = self._read()
        since: Numbers = {}
        for name, value in now.items():
            before = self._before[name]
            since[name] = None if value is None or before is None else value - before
        self._before = now
        tokens, verdicts = since.pop("tokens"), since.pop("verdicts")
        return {
            **since,
            "sampled_tokens_per_second": per_second(tokens, since["seconds_generation"]),
            "evaluations_per_second": per_second(verdicts, since["seconds_evaluation"]),
            **memory(),
        }


def per_second(count: float | None, seconds: float | None) -> float | None:
    """A rate; None where nothing went on."""
    return count / seconds if count is not None and seconds else None


def memory() -> Numbers:
    """GiB of memory: what this process holds now, and the most that torch has allocated on its GPU since the last call."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    peak = None
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        peak = torch.cuda.max_memory_allocated() / 2**30
        torch.cuda.reset_peak_memory_stats()
    return {"memory_process_gib": pages * os.sysconf("SC_PAGE_SIZE") / 2**30, "memory_gpu_gib": peak}
