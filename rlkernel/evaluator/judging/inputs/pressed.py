"""Numbers whose order their last bits decide.

Of normal numbers the largest of a row is larger than the next one by a thousandth, so that whoever compares 13 bits of a
mantissa, or puts a place into the lowest bits of a number, names the right one in nearly all draws. So where an operator names
places of an input by the order of its numbers, and these names are used, the numbers get neighbours in a round of their own: in
the order in which they are, each eight units in the last place above the next smaller one. Most of what is made of each of them,
such as an exponential, still tells them apart. Half precision has equal numbers in any draw, and stays. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs.bearing import is_same, places_in_memory, usual_call
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import mapped_at, tensors_of
from rlkernel.evaluator.messages.judgement import Pressed
from rlkernel.evaluator.program.operators import base_name, by_name, operators_of
from rlkernel.evaluator.program.schema import Program

ALONG = {"argmax", "argmin", "cummax", "cummin", "kthvalue", "max", "median", "min", "sort", "topk"}
"""Operators that name places along an axis."""
WITHIN = {"adaptive_max_pool2d", "adaptive_max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices"}
"""Operators that name places within windows."""
LEVELS = 64
"""How many different numbers there are where windows are compared, so that two of a window are neighbours."""
UNITS = 8
"""Units in the last place between neighbours."""
ONE = 0x3F800000
"""The bits of 1 in float32."""
MOST = 1 << 24
"""Numbers along an axis, at most: they lie between 2^-8 and 2^8."""
NOTE = "inputs whose order their last bits decide"
"""What stands behind a miss in such a round."""


class _Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes of which inputs an operator names places, and along which axis."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._given, self._places = inputs, places_in_memory(inputs)
        self._named: list[tuple[Pressed, StorageWeakRef]] = []
        """What an operator was given, and what says whether the names are still there."""
        self.used = dict[int, Pressed]()
        """Place of an input -> how its numbers may be pressed, where the names are given back or something is made of them."""

    def __exit__(self, *error: Any) -> None:
        self._use(one for one, names in self._named if not names.expired())  # type: ignore[no-untyped-call]
        super().__exit__(*error)  # type: ignore[no-untyped-call]

    def _use(self, found: Any) -> None:
        for one in found:
            self.used.setdefault(one.place, one)

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name, given = base_name(str(func)), by_name(func, args, kwargs)
        if self._named:
            storages = {one.untyped_storage()._cdata for one in tensors_of(list(given.values()))}
            self._use(one for one, names in self._named if names.cdata in storages)
        made = func(*args, **(kwargs or {}))
        if name in ALONG | WITHIN and (found := self._found(name, given)) is not None:
            names = made if name.startswith("arg") else made[1] if isinstance(made, tuple) else None
            if names is not None:
                self._named.append((found, StorageWeakRef(names.untyped_storage())))  # type: ignore[no-untyped-call]
        return made

    def _found(self, name: str, given: dict[str, Any]) -> Pressed | None:
        """What an operator is given; None where that is no input as a whole."""
        operand, dim = given["self"], given.get("dim")
        place = self._places.get(operand.untyped_storage().data_ptr())
        if place is None or not operand.dim() or not is_same(operand, self._given[place]):
            return None
        if name in WITHIN or (name.startswith("arg") and dim is None):
            return Pressed(place, None)
        return Pressed(place, (-1 if dim is None else dim) % operand.dim())


def may_name(program: Program) -> bool:
    """Whether a reference calls an operator that is watched."""
    return bool(operators_of(program) & (ALONG | WITHIN))


def pressed_of(reference: SeededReference) -> tuple[Pressed, ...]:
    """How inputs may be pressed of which the reference names places. Whatever it raises at its own inputs is raised."""
    inputs = reference.inputs(0)
    given = tensors_of(inputs)
    usual = usual_call(reference.model(0), inputs, watching := _Watching(given))

    def bears(one: Pressed) -> bool:
        tensor = given[one.place]
        if tensor.dtype != torch.float32 or not bool(tensor.isfinite().all()):
            return False
        if one.axis is not None and tensor.shape[one.axis] > MOST:
            return False
        return usual.borne(reference.model(0), lambda: pressed(reference.inputs(0), one))

    return tuple(one for _, one in sorted(watching.used.items()) if bears(one))


def pressed(inputs: list[Any], what: Pressed) -> list[Any]:
    """The arguments of forward, one of whose tensors holds neighbours in the order of its numbers."""
    return mapped_at(inputs, what.place, lambda tensor: torch.empty_like(tensor).copy_(neighbours(tensor, what.axis)))


def neighbours(tensor: torch.Tensor, axis: int | None) -> torch.Tensor:
    """Numbers about 1 in the order of a tensor's, along an axis or, with some that are equal, of all.

    >>> found = neighbours(torch.tensor([[3.0, -1.0, 2.0]]), 1)
    >>> found.argsort().tolist(), ((found - 1) / torch.finfo(torch.float32).eps).tolist()
    ([[1, 2, 0]], [[8.0, -4.0, 0.0]])
    """
    flat, along = (tensor.reshape(-1), 0) if axis is None else (tensor, axis)
    order = flat.argsort(dim=along, stable=True)
    count = flat.shape[along]
    steps = torch.arange(count, device=tensor.device)
    if axis is None:
        steps = steps * min(LEVELS, count) // count
    shape = [-1 if place == along else 1 for place in range(flat.dim())]
    ranks = torch.empty_like(order).scatter_(along, order, steps.view(shape).expand(order.shape))
    bits = ONE + UNITS * (ranks - (min(LEVELS, count) if axis is None else count) // 2)
    return bits.to(torch.int32).view(torch.float32).view(tensor.shape)
