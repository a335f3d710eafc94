"""Turns of a shortened loop between the first and the last one, which are followed for what they store and nothing else.

The last block of a row may be cut by its mask where all others are whole, so that the last turn does not say what the others
store. Nor does the first one, since a kernel may store its first block and leave out those that follow. So some turns are drawn
where the last stores less than the first: the others store as much as the most that one of these does.
"""

from __future__ import annotations

import random
from typing import Protocol

from rlkernel.evaluator.cpu.latency import Chain
from rlkernel.evaluator.cpu.reuse import Reuse
from rlkernel.evaluator.judging.costs.counts import Counts

DRAWN = 6
"""Turns that are drawn, unless one of them stores as much as the first. Of tiles, each second one may be cut at an edge."""


class Pricing(Protocol):
    """What follows programs and counts."""

    counts: Counts
    reuse: Reuse
    chain: Chain
    drawn_turns: random.Random


class Between:
    """The turns of one run of a loop that are drawn, and what they have stored."""

    def __init__(self, machine: Pricing, first: dict[int, float], last: Counts) -> None:
        """first: storage index -> the bytes that the first turn stores."""
        self._machine = machine
        self._last = last
        self._missing = {
            place: more
            for place, size in last.stored.items()
            if size > 0 and (more := min(first.get(place, 0.0) - size, last.left_out.get(place, 0.0))) > 0
        }
        """Storage index -> what the last turn stores less than the first, because of its masks. Where it stores nothing, nobody
        knows how many do."""
        self._found = dict.fromkeys(self._missing, 0.0)
        """How much of that one of the drawn turns has stored."""
        self._drawn = 0

    def goes_on(self) -> bool:
        """Whether another turn is drawn, which begins. What it computes, waits for and leaves in caches counts nowhere."""
        if self._drawn:
            self._note(self._machine.counts)
        if self._drawn == DRAWN or self._found == self._missing:
            return False
        if not self._drawn:
            self._kept = self._machine.reuse, self._machine.chain
        self._drawn += 1
        self._machine.counts, self._machine.reuse, self._machine.chain = Counts(), Reuse(), Chain()
        self._machine.reuse.begin()
        self._machine.chain.begin()
        return True

    def number(self, begin: int, end: int) -> int:
        """Which turn is followed, of those from `begin` to below `end`."""
        return self._machine.drawn_turns.randrange(begin, end)

    def end(self, whole: Counts, turns: int) -> None:
        """Count for so many turns what the drawn ones have stored more than the last one, and go on as before them."""
        if self._drawn:
            self._machine.reuse, self._machine.chain = self._kept
        for place, more in self._found.items():
            whole.stored[place] += more * turns
            whole.left_out[place] -= more * turns

    def _note(self, counts: Counts) -> None:
        for place, most in self._missing.items():
            more = min(most, counts.stored.get(place, 0.0) - self._last.stored[place])
            self._found[place] = max(self._found[place], more)
