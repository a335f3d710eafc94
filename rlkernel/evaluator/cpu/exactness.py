"""Whole numbers that a conversion of a kernel does not hold: places from 2,049 on in float16, rows from 256 on in 8 bits.

Where results are compared, all places may be small enough for the dtype that a kernel gives them. So the least number that a
conversion does not hold is noted, with the largest that it was given, beside loops and grids (`extents`). Conversions are told
apart by the lines of a kernel's text. Source: ours.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import triton.language as tl

from rlkernel.evaluator.cpu.kinds import known_others
from rlkernel.evaluator.cpu.numbers import Array, convert, widen
from rlkernel.evaluator.cpu.seen import Watched, is_seen
from rlkernel.evaluator.cpu.statements import running

Lost = tuple[int, int]
"""The largest whole number that a conversion was given and did not hold, and the least that it does not."""
_MANTISSAS = {tl.float16: 11, tl.bfloat16: 8, tl.float32: 24, tl.float8e4nv: 4, tl.float8e5: 3}
"""The bits that whole numbers have in floating-point types."""


class Machine(Watched, Protocol):
    """Where programs run whose conversions are watched."""

    lost: dict[int, Lost]
    """Lines of the running kernel, or of a function that it calls, and what conversions there did not hold."""


def note(machine: Machine, source: Any, target: Any) -> None:
    """A block, or a number, is converted to another type."""
    least = _least_lost(source.dtype.scalar, target.scalar)
    if least is None or not is_seen(machine, source):
        return
    largest = _largest_lost(source.data, source.dtype, target, least)
    others = known_others(source) if machine.dry else None
    if others is not None:
        largest = max(largest, _largest_lost(others, source.dtype, target, least))
    if largest:
        frame = running()
        line = 0 if frame is None else frame.f_lineno
        machine.lost[line] = max(machine.lost.get(line, (0, least)), (largest, least))


def _least_lost(source: Any, target: Any) -> int | None:
    """The least whole number above zero that a type may not hold and the other one does; None where there is none."""
    if target in _MANTISSAS:
        bits = _MANTISSAS[target]
        wide = _MANTISSAS.get(source, 53) if source.is_floating() else source.primitive_bitwidth
        return (1 << bits) + 1 if bits < wide else None
    if not target.is_int() or not source.is_int() or target.primitive_bitwidth >= source.primitive_bitwidth:
        return None
    return int(1 << (target.primitive_bitwidth - target.is_int_signed())) if target.primitive_bitwidth > 1 else None


def _largest_lost(data: Array, source: Any, target: Any, least: int) -> int:
    """The largest of some whole numbers that a type does not hold; zero where it holds all of them."""
    values = widen(data, source)
    if not values.size or not max(values.max(), -values.min()) >= least:  # NaN, too
        return 0
    converted = widen(convert(data, source, target), target)
    whole = np.isfinite(values) & (values == np.rint(values)) & (np.abs(values) < float(1 << 62))
    lost = whole & (np.abs(values) >= least) & (converted.astype(np.float64) != values.astype(np.float64))
    return int(np.abs(values[lost]).max()) if lost.any() else 0
