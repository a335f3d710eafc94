"""Which earlier turns a policy is shown, when there are more than its context holds (STTS, arXiv 2602.05885).

Each class takes the rewards of the turns so far, in order, and returns the positions of the turns that stay, in order. The
classes are for test-time scaling (`rlkernel.refine`). Training shows the whole history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlkernel.checks import check_number


@dataclass(frozen=True)
class FullHistory:
    """Show all turns."""

    def __call__(self, rewards: Sequence[float]) -> tuple[int, ...]:
        """See the module's docstring."""
        return tuple(range(len(rewards)))


@dataclass(frozen=True)
class LastTurns:
    """Show the last `count` turns."""

    count: int = 4

    def __post_init__(self) -> None:
        check_number(self, "count", least=1, whole=True)

    def __call__(self, rewards: Sequence[float]) -> tuple[int, ...]:
        """See the module's docstring."""
        return tuple(range(len(rewards)))[-self.count :]


@dataclass(frozen=True)
class TopTurns:
    """Show the `count` turns of highest reward, the later of equal ones (the paper), in the order in which they were written.

    Worked example, count = 2, rewards [1, 0, 2, 1]: positions 2 and 3.
    """

    count: int = 4

    def __post_init__(self) -> None:
        check_number(self, "count", least=1, whole=True)

    def __call__(self, rewards: Sequence[float]) -> tuple[int, ...]:
        """See the module's docstring."""
        best = sorted(range(len(rewards)), key=lambda i: (rewards[i], i), reverse=True)[: self.count]
        return tuple(sorted(best))


@dataclass(frozen=True)
class BestWindow:
    """Show the `count` consecutive turns with the highest sum of rewards, the later of equal ones (the public script).

    Worked example, count = 2, rewards [1, 0, 2, 1]: positions 2 and 3; rewards [2, 1, 0, 1]: positions 0 and 1.
    """

    count: int = 4

    def __post_init__(self) -> None:
        check_number(self, "count", least=1, whole=True)

    def __call__(self, rewards: Sequence[float]) -> tuple[int, ...]:
        """See the module's docstring."""
        starts = range(max(1, len(rewards) - self.count + 1))
        first = max(starts, key=lambda start: (sum(rewards[start : start + self.count]), start))
        return tuple(range(len(rewards)))[first : first + self.count]
