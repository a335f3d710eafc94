"""Whether a reference bears inputs that its author does not draw.

It may refuse them in its own way, or give numbers that are no longer finite. Or it never ends: `while not (x.abs() <= 1).all()`
halves a NaN for ever. So its operators are counted, and a call that makes many more of them than a usual one is not borne.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.references.reference_calls import call, kinds_of, tensors_of
from rlkernel.evaluator.program.operators import base_name

Inputs = list[Any] | Callable[[], list[Any]]
"""The arguments of forward, or what makes them, where that may fail as a call may."""
Mode = AbstractContextManager[Any]
MOST_TIMES = 8
"""How many times the operators of a usual call there may be."""
FEWEST = 1000
"""The operators that any call may make."""
ALIKE = {"_softmax", "_log_softmax", "clone", "_to_copy", "amax", "amin"}
"""Operators besides those that work element by element which give equal numbers of a row equal ones."""


class _Endless(Exception):
    """A call has made more operators than it may."""


class _Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operators, and stops a call that makes more than `most`."""

    def __init__(self, most: int | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._most = most
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        if self._most is not None and self.count > self._most:
            raise _Endless
        return func(*args, **(kwargs or {}))


@dataclass(frozen=True, slots=True)
class Usual:
    """What a call at the author's own inputs is like."""

    kinds: list[tuple[torch.Size, bool]]
    """The shape of each output, and whether it is finite."""
    operators: int
    seed: int
    """That of forward."""

    def borne(self, model: nn.Module, inputs: Inputs, watching: Mode | None = None) -> bool:
        """Whether a call on other inputs ends, and gives outputs as finite as usual; `watching` sees its operators."""
        found = self.outputs(model, inputs, watching)
        return found is not None and kinds_of(found) == self.kinds

    def ends(self, model: nn.Module, inputs: Inputs, watching: Mode | None = None) -> bool:
        """Whether a call on other inputs gives anything."""
        return self.outputs(model, inputs, watching) is not None

    def outputs(self, model: nn.Module, inputs: Inputs, watching: Mode | None = None) -> list[torch.Tensor] | None:
        """What a call on other inputs gives; None where it does not end, or the reference refuses them."""
        try:
            given = inputs() if callable(inputs) else inputs
            # What watches calls operators of its own, which are not the reference's.
            with watching or nullcontext(), _Counting(MOST_TIMES * self.operators + FEWEST):
                return tensors_of(call(model, given, self.seed))
        except Exception:  # a reference may refuse such inputs in its own way
            return None


def is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors hold the same elements of one memory, in the same order."""
    places = [(tensor.data_ptr(), tensor.shape, tensor.stride()) for tensor in (one, other)]
    return places[0] == places[1]


def places_in_memory(inputs: Sequence[torch.Tensor]) -> dict[int, int]:
    """Where the memory of an input begins -> its place among the inputs, by which an operator's operand is told to be one."""
    return {tensor.untyped_storage().data_ptr(): place for place, tensor in enumerate(inputs) if tensor.numel()}


class Origins:
    """From which inputs each tensor of a call was made element by element. Of one input alone, equal numbers stay equal."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        self._inputs = places_in_memory(inputs)
        self._made = dict[int, tuple[StorageWeakRef, frozenset[int]]]()
        """Identity of a storage -> what says whether it is still there, and the places of the inputs."""

    def itself(self, tensor: torch.Tensor) -> int | None:
        """The place of the input that a tensor is; None of any other tensor."""
        return self._inputs.get(tensor.untyped_storage().data_ptr())

    def of(self, tensor: torch.Tensor) -> int | None:
        """The place of the one input that a tensor is, or was made from; None where there are several."""
        places = self.all_of(tensor)
        return next(iter(places)) if len(places) == 1 else None

    def all_of(self, tensor: torch.Tensor) -> frozenset[int]:
        """The places of the inputs that a tensor was made from, or that it is."""
        made = self._made.get(tensor.untyped_storage()._cdata)
        if made is not None and not made[0].expired():  # type: ignore[no-untyped-call]
            return made[1]
        itself = self.itself(tensor)
        return frozenset() if itself is None else frozenset({itself})

    def note(self, func: Any, operands: Iterable[Any], made: Any) -> None:
        """An operator has made a tensor of its operands."""
        name = base_name(str(func))
        if not isinstance(made, torch.Tensor) or not (torch.Tag.pointwise in func.tags or name in ALIKE):
            return
        places = frozenset[int]().union(*(self.all_of(one) for one in operands if isinstance(one, torch.Tensor)))
        if places:
            storage = made.untyped_storage()
            self._made[storage._cdata] = StorageWeakRef(storage), places  # type: ignore[no-untyped-call]


def usual_call(model: nn.Module, inputs: list[Any], watching: Mode | None = None, *, seed: int = 0) -> Usual:
    """A call at inputs of the author's own. Whatever the reference raises is raised."""
    with watching or nullcontext(), (counting := _Counting()):
        outputs = tensors_of(call(model, inputs, seed))
    return Usual(kinds_of(outputs), counting.count, seed)
