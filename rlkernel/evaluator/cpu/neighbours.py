"""What becomes of an access that goes by a hint which calls neighbours what is none, see `hints`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rlkernel.evaluator.cpu.numbers import Array

TOGETHER = 16
"""Bytes that one access of a GPU may move together because a kernel says that they are neighbours."""
LEAST = 4
"""Elements that are taken to move together at most, where they are wider than 4 bytes."""

Place = tuple[str, int]
"""A function and its line."""
Kind = tuple[int, bytes]
"""What a false hint says, and which of its offsets follow each other."""
Hint = tuple[Place, Kind]
"""A helper that is asked twice gives two hints of one place, and a loop many of one kind."""


@dataclass(frozen=True, slots=True)
class FalseNeighbours:
    """Offsets of one dimension that `tl.max_contiguous` says to be neighbours in groups, and that are not."""

    offsets: Array
    said: int
    """The number of neighbours that the hint says."""

    @property
    def kind(self) -> Kind:
        """What accesses are judged by, so that a hint takes the place of another one only where both judge alike."""
        return self.said, (np.diff(self.offsets) == 1).tobytes()

    def claimed(self, addresses: Array, mask: Array, width: int, *, aligned: bool = True) -> Array:
        """The addresses of elements of `width` bytes that an access moves which goes by the hint; those that it is given where
        none does. aligned: whether that takes addresses that may move together, as a GPU's do."""
        for axis in range(addresses.ndim):
            if addresses.shape[axis] == len(self.offsets):
                along, inside = (np.moveaxis(each, axis, 0) for each in (addresses, mask))
                flat, masks = (each.reshape(len(self.offsets), -1) for each in (along, inside))
                found = self._claimed(flat.astype(np.int64), masks, width, aligned=aligned).astype(np.uint64)
                addresses = np.moveaxis(found.reshape(along.shape), 0, axis)
        return addresses

    def _claimed(self, addresses: Array, mask: Array, width: int, *, aligned: bool) -> Array:
        group = group_of(self.said, len(self.offsets), width)
        said = np.diff(self.offsets.reshape(-1, group), axis=1) == 1
        steps = np.diff(addresses.reshape(len(said), group, -1), axis=1)
        if np.any(steps[said] != width):
            return addresses  # neighbours by the hint are not neighbours in memory: an access takes them one by one
        begins = addresses[:: min(self.said & -self.said, len(addresses))]
        while aligned and group > 1 and not _may_move_together(begins, mask, group, width):
            group //= 2
        groups = addresses.reshape(len(addresses) // group, group, -1)
        return np.asarray((groups[:, :1] + width * np.arange(group)[None, :, None]).reshape(addresses.shape))


class GoneBy:
    """False hints of a launch by which an access may go: at full shape, and where kernels have data.

    A load that goes by one reads elsewhere. That is no failure where it stays inside of the tensors and nothing comes of what it
    reads, as of columns that are never stored. So what such a load gives is random where there is data, and a hint that no load
    goes by there is refused: nobody has seen what comes of it."""

    def __init__(self) -> None:
        self.full: dict[Place, str] = {}
        """Functions and lines of hints that loads go by at full shape -> what is wrong with them."""
        self._met: set[Place] = set()

    def note(self, place: Place, hint: FalseNeighbours, addresses: Array, mask: Array, width: int) -> Array:
        """Note an access at full shape, and give the addresses inside the mask that it reaches elsewhere."""
        claimed = hint.claimed(addresses, mask, width)
        strays = (claimed != addresses) & mask
        if np.any(strays):
            self.full[place] = elsewhere(hint.said, "at full shape")
        return np.asarray(claimed[strays])

    def strays(self, hints: Mapping[Hint, FalseNeighbours], addresses: Array, mask: Array, width: int) -> Array:
        """The lanes that a load with data may read elsewhere."""
        found = np.zeros(addresses.shape, dtype=bool)
        for (place, _), hint in hints.items():
            strays = (hint.claimed(addresses, mask, width, aligned=False) != addresses) & mask
            if np.any(strays):
                self._met.add(place)
                found |= strays
        return found

    def unmet(self) -> str:
        """What is wrong with a hint that loads go by at full shape, if none did where there was data."""
        return next((f"kernel {place[0]}: {why}" for place, why in self.full.items() if place not in self._met), "")


def _may_move_together(begins: Array, mask: Array, group: int, width: int) -> bool:
    """Whether elements may move in groups: what is said to be neighbours begins at multiples of a group's size, and no group is
    partly within the mask."""
    masks = mask.reshape(len(mask) // group, group, -1)
    return not np.any(begins % (group * width)) and bool(np.all(masks == masks[:, :1]))


def group_of(said: int, length: int, width: int) -> int:
    """How many neighbours of so many bytes one access may move of those that a hint says."""
    return min(said & -said, max(LEAST, TOGETHER // width), length)  # what divides the size, a power of two


def elsewhere(said: int, where: str) -> str:
    """What a false hint leads to."""
    return f"tl.max_contiguous says {said}, which does not hold {where}: accesses go elsewhere"
