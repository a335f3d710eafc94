"""What a kernel tells the compiler about values: multiples and neighbours. A false hint is found where a GPU may go by it.

`tl.multiple_of` is judged where it stands. `tl.max_contiguous` says that groups of offsets are neighbours, and only an access
that moves several elements at once goes by that. So a false one of offsets of one dimension is remembered while launches are
priced, and judged at each access of the same program: whether it makes neighbours in memory of what it calls neighbours, as the
columns of a row are and the rows of a matrix are not, and how many elements the addresses and the mask let move together. A load
that goes by one may still be right, see `GoneBy`.
Example: `tl.max_contiguous(columns % n, 128)` is false where the columns begin anew, and no access of a GPU goes by it where rows
of an odd `n` begin at any element.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import triton.language as tl

from rlkernel.evaluator.cpu.loaded import is_loaded
from rlkernel.evaluator.cpu.machine import Machine
from rlkernel.evaluator.cpu.memory import OutOfBounds
from rlkernel.evaluator.cpu.neighbours import FalseNeighbours, Place, elsewhere, group_of

WIDE = 4
"""Bytes of the elements that a hint is taken to be about where it is judged where it stands."""


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
    if not machine.dry and _place(2) in machine.gone_by.full and value.handle.data.ndim == 1:
        hint = FalseNeighbours(value.handle.data.astype(np.int64), _numbers(values)[0])
        machine.false_neighbours[_place(2), hint.kind] = hint
    elif _is_checked(machine, value) and not value.dtype.is_ptr():
        data = value.handle.data
        for axis, number in enumerate(_numbers(values)[: max(1, data.ndim)]):
            along = np.moveaxis(data, axis, 0).astype(np.int64)
            follows = machine.dry and data.ndim == 1  # until an access says how wide its elements are
            group = group_of(number, along.shape[0], 1 if follows else WIDE)
            if group > 1 and np.any(np.diff(along.reshape(-1, group, *along.shape[1:]), axis=1) != 1):
                if not follows:
                    raise OutOfBounds(elsewhere(number, _where(machine)))
                hint = FalseNeighbours(along, number)
                machine.false_neighbours[_place(2), hint.kind] = hint
    return value


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
