"""Problems that are neither solved always nor never, by what was seen of them lately."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from rlkernel.checks import check_number
from rlkernel.errors import UsageError
from rlkernel.history import History
from rlkernel.types import Problem
from rlkernel.uniform import EveryGroup


@dataclass(frozen=True)
class BySolveRate(EveryGroup):
    """Drawn without replacement with weight 1 if low <= s <= high, else `seldom`; s is the mean solve rate of the last `window`
    draws.

    A problem that was never drawn has weight 1. The weighted draw gives every problem the key u^(1/w), with u uniform, and takes
    the largest (Efraimidis and Spirakis, 2006).
    """

    low: float = 0.1
    high: float = 0.9
    seldom: float = 0.1
    window: int = 2

    def __post_init__(self) -> None:
        check_number(self, "low", "high", least=0, most=1)
        check_number(self, "seldom", above=0, most=1)
        if self.low > self.high:
            raise UsageError(f"BySolveRate.low is {self.low} and high {self.high}: rates between 0 and 1, the low one first")
        check_number(self, "window", least=1, whole=True)

    def weight(self, rate: float | None) -> float:
        """The weight of a problem with that solve rate; None: never drawn."""
        return 1.0 if rate is None or self.low <= rate <= self.high else self.seldom

    def __call__(
        self, problems: Sequence[Problem], history: History, count: int, seed: int, without: frozenset[int]
    ) -> tuple[int, ...]:
        """See `rlkernel.interfaces.Sampler`."""
        generator = random.Random(repr((seed, len(history.draws), sorted(without))))
        rates = history.rates(self.window)
        # The key's logarithm: where `seldom` is small, u^(1/w) itself would be 0 for most, and the first of them be taken.
        keys = [math.log(1 - generator.random()) / self.weight(rates.get(problem.name)) for problem in problems]
        left = [i for i in range(len(problems)) if i not in without]
        return tuple(sorted(left, key=lambda i: -keys[i])[:count])
