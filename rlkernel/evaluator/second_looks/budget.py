"""How much all second looks at one candidate take together, bounded by work that is counted (`cpu.pace`), so that no verdict
depends on what else the machine does."""

from __future__ import annotations

from rlkernel.evaluator.cpu_judge import Judged, TooLong
from rlkernel.evaluator.ended import Ended
from rlkernel.types import Status

MOST_WORK = 300_000.0
"""The work of all rounds of a candidate, see `cpu.pace`, above which sizes are made smaller: about 10 s of a core."""
OF_ALL_LOOKS = 6 * MOST_WORK
"""The work of all second looks at one candidate, after which there are no more: about 60 s of a core."""
AT_FULL = 4 * MOST_WORK
"""The most work of all rounds of a look at the full shape, for a text that has its sizes as numbers: no other look is needed
then."""
OF_A_SECOND = MOST_WORK / 15
"""The work that a run's second bears, with room for slow cores."""
OF_ANY_LOOK = MOST_WORK / 30
"""What each look takes at least: its rounds are drawn, its forward is traced and its outputs are compared."""
OF_ONE_FORWARD = MOST_WORK / 6
"""The most that a look's first forward takes, in or after which kernels fail or are given up."""
OF_A_TIMEOUT = 2 * MOST_WORK
"""Processor time, in work."""


def work_at_full(run_seconds: int) -> float:
    """The work of all rounds of a look at the full shape where a run may take so many seconds of processor time. It is what these
    bear, so that no such look ends by its time: 13 s of a core in training, which allows 20."""
    return min(AT_FULL, OF_A_SECOND * run_seconds)


class Budget:
    """What is left for second looks at one candidate."""

    def __init__(self, most: float = OF_ALL_LOOKS) -> None:
        self._left = most
        self.denied = False
        """Whether a look was not made, because nothing was left for it."""
        self.took_too_long = False
        """Whether the last look would have been too much work."""

    def allows(self) -> bool:
        """Whether there may be one more look; if not, one is denied."""
        self.denied |= self._left <= 0
        return self._left > 0

    def spend(self, found: Judged | Exception) -> None:
        """A look has found this."""
        work: float = 0.0
        self.took_too_long = isinstance(found, TooLong)
        if isinstance(found, Judged):
            work = found.work
        elif isinstance(found, TooLong):
            work = OF_ONE_FORWARD
        elif isinstance(found, Ended) and found.ran:
            work = OF_A_TIMEOUT if found.status is Status.TIMEOUT else OF_ONE_FORWARD
        self._left -= OF_ANY_LOOK + work
