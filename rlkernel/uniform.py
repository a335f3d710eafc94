"""The default choice of training problems: every problem equally often."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from rlkernel.history import History
from rlkernel.types import Group, Problem


class EveryGroup:
    """The part of a sampler that trains every group it has drawn, and draws once for a step."""

    @property
    def rounds(self) -> int:
        """No group is drawn again."""
        return 1

    def keeps(self, group: Group) -> bool:
        """Every group is trained."""
        return True


@dataclass(frozen=True)
class Uniform(EveryGroup):
    """Every problem is drawn once, in an order by the seed, before any is drawn again. Implements `interfaces.Sampler`."""

    def __call__(
        self, problems: Sequence[Problem], history: History, count: int, seed: int, without: frozenset[int]
    ) -> tuple[int, ...]:
        """See `rlkernel.interfaces.Sampler`."""
        drawn = history.counts
        counts = [drawn[problem.name] for problem in problems]
        generator = random.Random(seed)
        chosen: list[int] = []
        done = min(counts)
        for turn in range(max(counts) + 2):  # one order for each pass, of which the first `done` are over
            order = generator.sample(range(len(problems)), len(problems))
            if turn < done:
                continue
            chosen += [i for i in order if counts[i] == turn and i not in without][: count - len(chosen)]
            if len(chosen) == count:
                break
        return tuple(chosen)


def uniform_among(
    problems: Sequence[Problem], among: Sequence[int], history: History, count: int, seed: int,
    without: frozenset[int] = frozenset(),
) -> tuple[int, ...]:  # fmt: skip
    """`count` of the indices `among`, or as many as there are, as `Uniform` draws them if there are no others. without: those
    that are not drawn again."""
    drawn = frozenset(place for place, index in enumerate(among) if index in without)
    left = min(count, len(among) - len(drawn))
    if not left:
        return ()
    found = Uniform()([problems[index] for index in among], history, left, seed, drawn)
    return tuple(among[place] for place in found)
