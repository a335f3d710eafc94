"""Problems by level, in given shares."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from rlkernel.errors import UsageError
from rlkernel.history import History
from rlkernel.types import Problem
from rlkernel.uniform import EveryGroup, uniform_among


@dataclass(frozen=True)
class ByLevel(EveryGroup):
    """Every place of a batch goes to level l with probability shares[l - 1] / sum of shares; inside a level, `Uniform` draws.

    Example: shares (3, 1) fill three of four places with problems of level 1. A level that has no problem left gives its place to
    the others.
    """

    shares: tuple[float, ...] = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        if not self.shares or min(self.shares) < 0 or sum(self.shares) <= 0:
            raise UsageError(
                f"ByLevel.shares is {self.shares}: give one share per level that is not negative, some of them positive"
            )

    def __call__(
        self, problems: Sequence[Problem], history: History, count: int, seed: int, without: frozenset[int]
    ) -> tuple[int, ...]:
        """See `rlkernel.interfaces.Sampler`."""
        generator = random.Random(repr((seed, len(history.draws), sorted(without))))
        left = {level: [i for i, p in enumerate(problems) if p.level == level and i not in without] for level in self._levels()}
        rest = [i for i, p in enumerate(problems) if i not in without and p.level not in left]
        places: dict[int, int] = dict.fromkeys(left, 0)
        for _ in range(count):
            open_levels = [level for level in left if places[level] < len(left[level])]
            if not open_levels:
                break
            weights = [self.shares[level - 1] for level in open_levels]
            places[generator.choices(open_levels, weights)[0]] += 1
        chosen: list[int] = []
        for level, number in places.items():
            chosen += uniform_among(problems, left[level], history, number, seed)
        return (*chosen, *uniform_among(problems, rest, history, count - len(chosen), seed))

    def _levels(self) -> list[int]:
        return [level for level, share in enumerate(self.shares, 1) if share > 0]
