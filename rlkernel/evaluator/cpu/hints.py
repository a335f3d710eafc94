"""What a kernel tells the compiler about values: multiples and neighbours. A false hint is found where a GPU may go by it.

`tl.multiple_of` is judged where it stands. `tl.max_contiguous` says that groups of offsets are neighbours, and only an access
that moves several elements at once goes by that. So a false one of offsets of one dimension is remembered while launches are
priced, and judged at each access of the same program: whether it makes neighbours in memory of what it calls neighbours, as the
columns of a row are and the rows of a matrix are not, and how many elements the addresses and the mask let move together.
Example: `tl.max_contiguous(columns % n, 128)` is false where the columns begin anew, and no access of a GPU goes by it where rows
of an odd `n` begin at any element.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import triton.language as tl

from rlkernel.evaluator.cpu.loaded import is_loaded
from rlkernel.evaluator.cpu.machine import Machine, OutOfBounds
from rlkernel.evaluator.cpu.numbers import Array

ALIGNED_ELEMENTS = 4
"""Neighbours that one access of a GPU may move together because a kernel says that they are neighbours."""

Place = tuple[str, int]
"""A function and its line."""
Kind = tuple[int, bytes]
"""What a false hint says, and which of its offsets follow each other."""


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

    def check(self, addresses: Array, mask: Array, width: int) -> None:
        """Judge an access to these addresses of elements of `width` bytes. Raises OutOfBounds."""
        for axis in range(addresses.ndim):
            if addresses.shape[axis] == len(self.offsets):
                along, inside = (np.moveaxis(each, axis, 0).reshape(len(self.offsets), -1) for each in (addresses, mask))
                self._check(along, inside, width)

    def _check(self, addresses: Array, mask: Array, width: int) -> None:
        group = _group(self.said, len(self.offsets))
        addresses = addresses.astype(np.int64)
        said = np.diff(self.offsets.reshape(-1, group), axis=1) == 1
        steps = np.diff(addresses.reshape(len(said), group, -1), axis=1)
        if np.any(steps[said] != width):
            return  # neighbours by the hint are not neighbours in memory: an access takes them one by one
        begins = addresses[:: min(self.said & -self.said, len(addresses))]
        while group > 1 and not _may_move_together(begins, mask, group, width):
            group //= 2
        steps = np.diff(addresses.reshape(len(addresses) // group, group, -1), axis=1)
        if np.any((steps != width) & mask.reshape(len(mask) // group, group, -1)[:, 1:]):
            raise OutOfBounds(_elsewhere(self.said, "at full shape"))


def _may_move_together(begins: Array, mask: Array, group: int, width: int) -> bool:
    """Whether elements may move in groups: what is said to be neighbours begins at multiples of a group's size, and no group is
    partly within the mask."""
    masks = mask.reshape(len(mask) // group, group, -1)
    return not np.any(begins % (group * width)) and bool(np.all(masks == masks[:, :1]))


def multiple_of(machine: Machine, value: Any, values: Any) -> Any:
    """A hint: each run of neighbours begins at a multiple. Raises OutOfBounds."""
    if _is_checked(machine, value):
        data = value.handle.data
        element = value.dtype.scalar
        step = max(1, element.element_ty.primitive_bitwidth // 8) if element.is_ptr() else 1  # a pointer counts in bytes
        for axis, number in enumerate(_numbers(values)[: max(1, data.ndim)]):
            along = np.moveaxis(data, axis, 0)
            begins = np.ones(along.shape, dtype=bool)
            begins[1:] = along[1:] != along[:-1] + along.dtype.type(step)
            if number > 0 and np.any(along[begins] % along.dtype.type(number)):
                raise OutOfBounds(f"tl.multiple_of says {number}, which does not hold {_where(machine)}: accesses are misaligned")
    return value


def max_contiguous(machine: Machine, value: Any, values: Any) -> Any:
    """A hint, for as many neighbours as one access may move together. Raises OutOfBounds."""
    if _is_checked(machine, value) and not value.dtype.is_ptr():
        data = value.handle.data
        for axis, number in enumerate(_numbers(values)[: max(1, data.ndim)]):
            along = np.moveaxis(data, axis, 0).astype(np.int64)
            group = _group(number, along.shape[0])
            if group > 1 and np.any(np.diff(along.reshape(-1, group, *along.shape[1:]), axis=1) != 1):
                if not machine.dry or data.ndim != 1:
                    raise OutOfBounds(_elsewhere(number, _where(machine)))
                hint = FalseNeighbours(along, number)
                machine.false_neighbours[hint.kind] = hint
    return value


def _group(said: int, length: int) -> int:
    return min(said & -said, ALIGNED_ELEMENTS, length)  # what divides the size, a power of two


def _elsewhere(said: int, where: str) -> str:
    return f"tl.max_contiguous says {said}, which does not hold {where}: accesses go elsewhere"


def _numbers(values: Any) -> list[int]:
    many = values if isinstance(values, (list, tuple, tl.core.tuple)) else [values]
    return [int(v.value if isinstance(v, tl.constexpr) else v) for v in many]


def _is_checked(machine: Machine, value: Any) -> bool:
    """Whether a hint of a kernel about this value is checked where it runs now: at full shape, where the compiler uses it; where
    memory decides the value, which nobody knows there, wherever the kernel has data."""
    if not isinstance(value, tl.tensor):
        return False
    place = _place(3)
    if machine.dry and is_loaded(value):
        machine.hints_on_memory.add(place)
        return False
    return machine.dry or place in machine.hints_on_memory


def _place(frames: int) -> Place:
    """Where the kernel is, so many calls below."""
    code = sys._getframe(frames)
    return code.f_code.co_name, code.f_lineno


def _where(machine: Machine) -> str:
    """The words that say what a false hint is about."""
    return "at full shape" if machine.dry else "of values from memory"
