"""What the host knows of the slots: who samples in them, which beginnings idle ones hold, and who gets pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlkernel.policy.engine import Request
from rlkernel.policy.slots.pages import Pages, Room
from rlkernel.policy.slots.prefill import PrefillRow


@dataclass(slots=True)
class Slot:
    """One slot."""

    request: Request | None = None
    """The request that is sampled in the slot; None for an idle slot."""
    token_ids: tuple[int, ...] = ()
    """The tokens whose keys and values an idle slot holds, or the context of its request."""
    used: int = 0
    """The clock when the slot began its request, or became idle; 0 for never."""
    count: int = 0
    """The tokens that its request had when the host last looked."""


class Occupancy:
    """The slots of an engine. `pages` are those of its cache."""

    def __init__(self, slots: int) -> None:
        self.slots = [Slot() for _ in range(slots)]
        self.pages = Pages(Room(0, 1, 0), slots)
        self._clock = 0

    def request(self, slot: int) -> Request:
        """The request that is sampled in a slot, which is not idle."""
        request = self.slots[slot].request
        assert request is not None
        return request

    def running(self) -> list[int]:
        """The slots in which requests are sampled."""
        return [s for s, slot in enumerate(self.slots) if slot.request is not None]

    def idle(self) -> list[int]:
        """The idle slots; the one to be overwritten next comes first."""
        return sorted((s for s, slot in enumerate(self.slots) if slot.request is None), key=lambda s: self.slots[s].used)

    def last(self) -> int:
        """The running slot whose request was begun last."""
        return max(self.running(), key=lambda s: self.slots[s].used)

    def longest(self) -> int:
        """The number of tokens after which all running slots have finished at the latest."""
        return max(self.request(s).budget - self.slots[s].count for s in self.running())

    def finish(self, slot: int, token_ids: tuple[int, ...]) -> None:
        """Let a slot be idle, and hold the keys and values of these tokens, and no page beyond them: what goes on in it needs all
        of its pages, and those who share its context get as many."""
        self.pages.release(slot, len(token_ids))
        self._clock += 1
        self.slots[slot] = Slot(None, token_ids, self._clock)

    def vacate(self, slot: int) -> None:
        """Forget what a slot holds."""
        self.pages.release(slot)
        self.slots[slot] = Slot()

    def affordable(self, queue: Sequence[Request]) -> int:
        """The number of requests at the head of a queue that there are slots and pages for: pages of the context and the first
        token, and one more for everybody who will need more, so that nobody gives way at once."""
        room, held, running, idle = self.pages.room, self.pages.held, self.running(), self.idle()
        left = self.pages.free + sum(len(held[s]) for s in idle)
        left -= sum(room.needed(self._end(s)) > len(held[s]) for s in running)
        for n, request in enumerate(queue[: len(idle)]):
            length = len(request.context_ids)
            needed = room.needed(length + 1)
            left -= needed + (room.needed(length + request.budget) > needed)
            if left < 0 and (n or running):
                return n
        return min(len(queue), len(idle))

    def assign(self, requests: Sequence[Request]) -> list[PrefillRow]:
        """Give idle slots to requests; the rows to compute. Requests with one context share a row, which goes on in the slot that
        holds its beginning."""
        idle = self.idle()
        groups: dict[tuple[int, ...], list[Request]] = {}
        for request in requests:
            groups.setdefault(request.context_ids, []).append(request)
        kept: dict[tuple[int, ...], int] = {}
        for context in groups:
            if (slot := self._continued(context, idle)) is not None:
                idle.remove(slot)
                kept[context] = slot
        rows = []
        for context, group in groups.items():
            start = len(self.slots[kept[context]].token_ids) if context in kept else 0
            own = [kept[context]] if context in kept else []
            while len(own) < len(group):
                own.append(idle.pop(0))
                self.vacate(own[-1])
            for slot, request in zip(own, group, strict=True):
                self._clock += 1
                self.slots[slot] = Slot(request, context, self._clock)
            rows.append(PrefillRow(context, start, tuple(own)))
        return rows

    def _continued(self, context: tuple[int, ...], idle: list[int]) -> int | None:
        """The idle slot that holds the longest beginning of the context."""
        best, length = None, 0
        for s in idle:
            held = self.slots[s].token_ids
            n = len(held)
            # The last token is what tells trajectories of one problem apart soonest.
            if length < n < len(context) and context[n - 1] == held[-1] and context[:n] == held:
                best, length = s, n
        return best

    def positions(self, steps: int) -> dict[int, int]:
        """The positions that running slots need for so many tokens more, or to their ends."""
        return {s: min(len(self.slots[s].token_ids) + self.slots[s].count + steps, self._end(s)) for s in self.running()}

    def _end(self, slot: int) -> int:
        """The positions that a running slot may need to the end of its request."""
        return len(self.slots[slot].token_ids) + self.request(slot).budget

    def enough(self, positions: dict[int, int]) -> bool:
        """Whether slots can get the pages for so many positions, those of idle slots included."""
        return self._missing(positions) <= self.pages.free + sum(len(self.pages.held[s]) for s in self.idle())

    def provide(self, positions: dict[int, int]) -> list[int]:
        """Give slots the pages for so many positions, of idle slots where none are free. Returns those that have new pages."""
        missing, idle = self._missing(positions), iter(self.idle())
        while self.pages.free < missing:
            self.vacate(next(idle))
        return [slot for slot, reach in positions.items() if self.pages.take(slot, reach)]

    def shrink(self, pages: int) -> None:
        """Let idle slots forget what they hold until all slots have at most so many pages."""
        idle = iter(self.idle())
        while sum(map(len, self.pages.held)) > pages:
            self.vacate(next(idle))

    def _missing(self, positions: dict[int, int]) -> int:
        return sum(self.pages.missing(slot, reach) for slot, reach in positions.items())
