"""Whole numbers that are larger than any draw.

Of products of bytes between -4 and 4 whoever multiplies in int8 is right, and whoever adds up prices in float32 as long as these
are low. Floating-point inputs are scaled, and whole numbers stay, because they may be places, labels, lengths or bits. So a
reference is watched: an input of whole numbers of which it makes nothing but sums and products is larger in a round of its own.
Truth values and signs stay, and so do results in what float32 and int32 count to: at full shape an honest kernel may add up a
part of them there. Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs.bearing import places_in_memory, usual_call
from rlkernel.evaluator.judging.inputs.fixed import WHOLE
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import mapped_at, tensors_of
from rlkernel.evaluator.messages.judgement import Enlarged
from rlkernel.evaluator.program.operators import base_name

ARITHMETIC = {
    "_int_mm", "_to_copy", "_unsafe_view", "add", "addmm", "baddbmm", "bmm", "clone", "convolution", "copy", "cumsum", "dot",
    "mean", "mm", "mul", "mv", "neg", "rsub", "stack", "sub", "sum",
}  # fmt: skip
"""Operators of which a larger number makes a larger result and nothing else, beside views."""
FACTORS = (8, 4, 2)
"""By what numbers are larger, the first that is borne."""
SIGNS = 1
"""What truth values and signs are no larger than."""
WIDTHS = (1 << 24, 1 << 31)
"""What whole results stay within that are so usually, with room for another draw: what float32 and int32 count to."""
ROOM = 2
"""How many times as large another draw's results, or a part of a sum, may be as what was seen."""
LARGER = "whole numbers larger than drawn"
"""What stands behind a miss in such a round."""


def enlarged(inputs: list[Any], what: Enlarged, seed: int) -> list[Any]:
    """The arguments of forward with larger whole numbers in one of them, whose ends are drawn from `seed`. Zeros stay."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        generator = torch.Generator(tensor.device).manual_seed(seed)
        ends = torch.randint(0, what.factor, tensor.shape, generator=generator, device=tensor.device, dtype=torch.int64)
        made = tensor.long() * what.factor + ends * tensor.long().sign()
        return torch.empty_like(tensor).copy_(made)

    return mapped_at(inputs, what.place, change)


class _Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes what becomes of inputs of whole numbers, and the largest whole number that is made of any."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._inputs = places_in_memory(inputs)
        self._made = dict[int, tuple[StorageWeakRef, frozenset[int]]]()
        """Identity of a storage -> what says whether it is still there, and of which inputs it was made."""
        self.told = set[int]()
        """Places of inputs of which something else is made than sums and products."""
        self.added = set[int]()
        """Places of inputs of which sums and products are made."""
        self.largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        operands = tensors_of([*args, *(kwargs or {}).values()])
        places = frozenset[int]().union(*map(self._of, operands))
        made = func(*args, **(kwargs or {}))
        if not places:
            return made
        name = base_name(str(func))
        (self.added if name in ARITHMETIC or func.is_view else self.told).update(places)
        for one in tensors_of([made]):
            storage = one.untyped_storage()
            self._made[storage._cdata] = StorageWeakRef(storage), places  # type: ignore[no-untyped-call]
            if one.dtype in WHOLE and one.numel():
                self.largest = max(self.largest, _largest(one))
        return made

    def _of(self, tensor: torch.Tensor) -> frozenset[int]:
        storage = tensor.untyped_storage()
        made = self._made.get(storage._cdata)
        if made is not None and not made[0].expired():  # type: ignore[no-untyped-call]
            return made[1]
        itself = self._inputs.get(storage.data_ptr())
        return frozenset() if itself is None else frozenset({itself})


def _may(tensor: torch.Tensor) -> bool:
    return tensor.dtype in WHOLE and tensor.numel() > 1 and _largest(tensor) > SIGNS


def _largest(tensor: torch.Tensor) -> int:
    return max(abs(int(end)) for end in tensor.aminmax())


def enlarged_of(reference: SeededReference) -> tuple[Enlarged, ...]:
    """The inputs of whole numbers that are larger in a round. Whatever the reference raises at its own inputs is raised."""
    inputs = reference.inputs(0)
    given = {place: tensor.clone() for place, tensor in enumerate(tensors_of(inputs)) if _may(tensor)}
    if not given:
        return ()
    usual = usual_call(reference.model(0), inputs, watching := _Watching(tensors_of(inputs)))
    found = list[Enlarged]()
    for place in sorted(given.keys() & (watching.added - watching.told)):
        for one in _tried(place, given[place]):
            made = enlarged(reference.inputs(0), one, 0)
            seen = _Watching(tensors_of(made))
            if usual.borne(reference.model(0), made, seen) and _width(ROOM * seen.largest) <= _width(watching.largest):
                found.append(one)
                break
    return tuple(found)


def _tried(place: int, tensor: torch.Tensor) -> Iterator[Enlarged]:
    """What the dtype has room for, the largest first; numbers that fit into half of 32 bits stay there."""
    most = min(torch.iinfo(tensor.dtype).max, max(WIDTHS[1] // ROOM, _largest(tensor)))
    yield from (Enlarged(place, factor) for factor in FACTORS if (_largest(tensor) + 1) * factor <= most)


def _width(number: int) -> int:
    return sum(number >= width for width in WIDTHS)
