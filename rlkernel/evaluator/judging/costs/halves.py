"""Which float32 products of a reference a kernel may multiply in half precision, for the floor of a modelled time.

A reference that widens its operands, as `(q.float() @ k.float().mT).to(q.dtype)`, computes on half precision's numbers. A kernel
multiplies these as they are, on tensor cores of half precision that add up in float32, and loses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rlkernel.evaluator.program.operators import base_name, writes
from rlkernel.evaluator.program.schema import Op

HALF = torch.bfloat16
"""The dtype whose rate such a product has."""
_KEEPING = {"_to_copy", "clone", "index_select", "index", "gather", "repeat", "cat", "stack", "embedding"}
"""Operators that make other memory hold the numbers that they are given."""


class Halves:
    """Follows the steps of a reference's forward: which memory holds numbers of half precision, whatever its dtype."""

    def __init__(self) -> None:
        self._widened: set[int] = set()

    def see(self, step: Op, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> None:
        """Note a step. `read`: all of its arguments, `made`: its results."""
        keys = {t.untyped_storage()._cdata for t in made}
        if writes(step):
            self._widened -= keys
        elif base_name(step.op) in _KEEPING and all(self._holds(t) for t in read if t.is_floating_point()):
            self._widened |= keys

    def multiplied(self, read: Sequence[torch.Tensor]) -> bool:
        """Whether a product multiplies numbers of half precision: what it adds, such as a bias, may be finer."""
        return all(self._holds(t) for t in read if t.dim() > 1)

    def _holds(self, tensor: torch.Tensor) -> bool:
        return is_half(tensor) or tensor.untyped_storage()._cdata in self._widened


def seen_in_half(outputs: Sequence[torch.Tensor]) -> bool:
    """Whether all that is seen of a forward has half precision, so that nobody sees more of its products."""
    return bool(outputs) and all(is_half(output) for output in outputs)


def is_half(tensor: torch.Tensor) -> bool:
    """Whether a tensor has half precision, or less."""
    return tensor.is_floating_point() and tensor.itemsize <= 2
