"""How much of each output the reference writes: all of it, or a part where it lies in memory that was there before.

A candidate's kernels need to write no more. Example: a cache among the arguments, of which forward replaces one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from rlkernel.evaluator.judging.costs.operator_costs import changed_bytes, changes_a_part, dense_bytes, scatters_in_place
from rlkernel.evaluator.program.operators import writes
from rlkernel.evaluator.program.schema import Op


def written_bytes(step: Op, tensor: torch.Tensor, read: Sequence[torch.Tensor]) -> float:
    """What a step writes of a tensor that it returns. `read`: all of its arguments. Of memory that was there before it may write
    a part alone: what numbers name, or an unknown part that a mask names. Of that a byte for each of the mask's elements, and
    what is put there, are sure."""
    if not changes_a_part(step):
        return dense_bytes(tensor)
    if scatters_in_place(step, read):
        return changed_bytes(step, read)
    masks = sum(dense_bytes(t) for t in read[1:] if t.dtype is torch.bool)
    elements = max((dense_bytes(t) // t.element_size() for t in read[1:] if t.dtype is not torch.bool), default=0)
    return min(dense_bytes(tensor), masks + elements * tensor.element_size())


class LeastWritten:
    """Follows the steps of a reference's forward."""

    def __init__(self, before: Iterable[torch.Tensor]) -> None:
        self._written = {tensor.untyped_storage()._cdata: 0.0 for tensor in before}
        """Memory that was there before -> the bytes that are written into it."""

    def see(self, step: Op, read: Sequence[torch.Tensor], made: Sequence[torch.Tensor]) -> None:
        """Count a step. `read`: all of its arguments, `made`: its results."""
        if not writes(step):
            return
        for tensor in made:
            key = tensor.untyped_storage()._cdata
            if key in self._written:
                self._written[key] += written_bytes(step, tensor, read)

    def of(self, outputs: Sequence[torch.Tensor]) -> tuple[float, ...]:
        """The bytes of each output that the reference has written."""
        return tuple(min(self._written.get(o.untyped_storage()._cdata, float("inf")), dense_bytes(o)) for o in outputs)
