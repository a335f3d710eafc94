"""Whether windows that move over a tensor look at all of it, and with all of their places. Source: ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.evaluator.program.operators import argument, base_name
from rlkernel.evaluator.program.schema import Op

CONVOLUTION = "convolution"
POOLS = {"avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices"}


@dataclass(frozen=True, slots=True)
class Axis:
    """How windows move along one axis."""

    window: int
    stride: int = 1
    padding: int = 0
    dilation: int = 1

    def all_of(self, size: int, count: int) -> bool:
        """Whether `count` windows look at all of `size` places, each place of a window at one of these.

        >>> Axis(3, 2).all_of(9, 4), Axis(3, 2).all_of(10, 4), Axis(1, 2).all_of(9, 5), Axis(3, 1, 4, 4).all_of(4, 4)
        (True, False, False, False)
        """
        seen = torch.zeros(size, dtype=torch.bool)
        for place in range(self.window):
            first = place * self.dilation - self.padding
            skipped = max(0, -(first // self.stride))  # windows before the beginning
            begin, end = first + skipped * self.stride, first + (count - 1) * self.stride + 1
            if begin >= min(end, size):
                return False
            seen[begin : min(end, size) : self.stride] = True
        return bool(seen.all())


def look_at_all(step: Op, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> bool:
    """Whether each element of all operands of a convolution or a pool has a part in its result; False of other operators."""
    name = base_name(step.op)
    if name == CONVOLUTION:
        window = [*read[1].shape[2:]]
        moving, still = (made[0], read[0]) if argument(step, "transposed", False) else (read[0], made[0])
    elif name in POOLS:
        window = _whole(argument(step, "kernel_size"), read[0].dim())
        moving, still = read[0], made[0]
    else:
        return False
    axes, count = zip(moving.shape[-len(window) :], still.shape[-len(window) :], strict=True), len(window)
    strides = _whole(argument(step, "stride", []), count) or window
    paddings, dilations = (_whole(argument(step, key, [start]), count) for key, start in (("padding", 0), ("dilation", 1)))
    each = zip(axes, window, strides, paddings, dilations, strict=True)
    return all(Axis(*how).all_of(size, windows) for (size, windows), *how in each)


def _whole(value: Any, count: int) -> list[int]:
    """A number for each of some axes, of which one may be given for all; none where none is."""
    given = [value] if isinstance(value, int) else [*value]
    return given * count if len(given) == 1 else given
