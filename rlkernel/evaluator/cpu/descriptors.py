"""What a GPU asks of a tensor descriptor: that it begins at a multiple of 16 bytes, and that so far apart its rows lie.

It is asked at full shape, of all programs as far as they are known. Results are compared at smaller sizes, where scratch that is
cut by a size is often aligned to less: 8 halves of each row begin 16 bytes apart, and one begins 2. There it is asked only where
memory says where a descriptor begins, which nobody knows at full shape. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from triton.runtime.interpreter import TensorDescHandle

from rlkernel.evaluator.cpu.kinds import others
from rlkernel.evaluator.cpu.loaded import is_loaded

ALIGNMENT = 16
"""Bytes."""
_BY_MEMORY = ("a tensor descriptor", 0)
"""Stands among a machine's hints on memory where memory says where a descriptor lies."""


def _misaligned(descriptor: Any) -> Iterator[str]:
    """What does not lie at multiples of `ALIGNMENT`."""
    size = descriptor.base.dtype.element_ty.primitive_bitwidth // 8
    for name, values, unit in (("base", [descriptor.base], 1), ("stride", descriptor.strides[:-1], size)):
        for value in values:
            elsewhere = others(value)
            known = [value.data] if elsewhere is None else [value.data, elsewhere]
            if any(np.any(data.astype(np.int64) * unit % ALIGNMENT) for data in known):
                yield name


def install(machine: Any) -> None:
    """For good: descriptors of kernels that `machine` interprets are held against these rules."""

    def validate(descriptor: Any) -> None:
        assert descriptor.strides[-1].data.item() == 1, "last dim must be contiguous"
        if machine.dry and is_loaded(descriptor):
            machine.hints_on_memory.add(_BY_MEMORY)
        elif machine.dry or _BY_MEMORY in machine.hints_on_memory:
            wrong = next(_misaligned(descriptor), None)
            assert wrong is None, f"{wrong} must be {ALIGNMENT}-byte aligned"

    TensorDescHandle.validate = validate
