"""Which pages of a cache belong to which slot. A page is a number of positions that lie together; a slot has as many as it needs,
anywhere.

    Room(pages=6, size=128, positions=384)      slot 0, 300 tokens: pages 0, 1, 4      slot 1, 90 tokens: page 2      free: 3, 5
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """How much a cache holds beside its scratch page."""

    pages: int
    size: int
    """The positions of a page."""
    positions: int
    """The positions of the longest slot, a multiple of `size`."""

    @property
    def width(self) -> int:
        """The pages of the longest slot."""
        return self.needed(self.positions)

    def needed(self, positions: int) -> int:
        """The pages that so many positions take."""
        return -(-positions // self.size)


class Pages:
    """The pages of all slots. `held` has those of each slot in the order of their positions."""

    def __init__(self, room: Room, slots: int) -> None:
        self.room = room
        self.held: list[list[int]] = [[] for _ in range(slots)]
        self._free = list(range(room.pages))

    @property
    def free(self) -> int:
        """The number of pages that no slot has."""
        return len(self._free)

    def missing(self, slot: int, positions: int) -> int:
        """How many pages more a slot needs for so many positions."""
        return max(0, self.room.needed(positions) - len(self.held[slot]))

    def take(self, slot: int, positions: int) -> bool:
        """Give a slot the pages that so many positions need, of those that are free the lowest. Returns whether it got any."""
        missing = self.missing(slot, positions)
        if missing > self.free or self.room.needed(positions) > self.room.width:
            raise AssertionError(f"slot {slot} asks for {positions} positions: {self.free} pages are free, {self.room}")
        self.held[slot] += [heapq.heappop(self._free) for _ in range(missing)]
        return missing > 0

    def release(self, slot: int, positions: int = 0) -> None:
        """Take from a slot all pages beyond those of its first positions."""
        kept = self.room.needed(positions)
        for page in self.held[slot][kept:]:
            heapq.heappush(self._free, page)
        self.held[slot] = self.held[slot][:kept]

    def move(self, room: Room) -> list[int]:
        """Take over another room, which has enough pages for what the slots hold. Returns the old numbers of the pages held: the
        first of them has the new number 0, and so on."""
        order = sorted(page for pages in self.held for page in pages)
        new = {page: i for i, page in enumerate(order)}
        self.held = [[new[page] for page in pages] for pages in self.held]
        self.room, self._free = room, list(range(len(order), room.pages))
        return order


@dataclass(frozen=True)
class Growth:
    """Decides how much room a cache gets."""

    slots: int
    """The most completions at a time."""
    size: int | None
    """The positions of a page; None for slots of one page each, which is as long as the longest of them."""
    block: int
    """Positions are rounded up to a multiple of this, which is a multiple of `size`."""
    longest: int
    """The most positions that the model takes."""

    def room(self, before: Room | None, positions: int, affordable: int) -> Room:
        """The room where the longest completion has so many positions at its end, of a cache that may have `affordable` positions
        beside a scratch page: all slots could be as long, if there is memory. A cache that has to grow grows by half as much
        again, since later turns are longer; slots of one page only where all of them can."""
        longest = self._round(max(positions, before.positions if before else 0))
        if before is not None and longest > before.positions:
            roomy = max(longest, min(self._round(longest * 3 // 2), self._round(self.longest)))
            if self.size is not None or affordable // roomy - 1 >= self.slots:
                longest = roomy
        size = self.size or longest
        return Room(min(self.slots * longest // size, affordable // size - 1), size, longest)

    def _round(self, positions: int) -> int:
        return -(-positions // self.block) * self.block
