"""What operators make of arguments that look alike: told once by torch's own shape functions, and the same ever after.

On tensors without data nothing else can differ. Torch's shape functions are Python and take some 0.1 ms of each step; a forward
over 512 time steps asks them the same ten questions again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.evaluator.trace.devices import META
from rlkernel.evaluator.trace.overloads import about

MOST = 1 << 14
"""The most questions of which the answers are kept."""
Dense = tuple[tuple[int, ...], tuple[int, ...], torch.dtype]
"""A tensor in memory of its own: size, stride and dtype."""
_TENSORS = (torch.Tensor, torch.nn.Parameter)
_named = getattr(torch.Tensor, "has_names", lambda tensor: False)  # newer ones give no names to dimensions
_VALUES = frozenset({int, float, bool, str, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format})
"""Types of arguments of which equal ones, of one type, mean the same."""


class Asked:
    """One question: what an operator makes of its arguments, by what these look like."""

    __slots__ = ("parts", "storages", "told")

    def __init__(self, name: str) -> None:
        self.parts: list[Any] = [name]
        self.storages: list[int] = []
        """The memory of the tensors among the arguments, in order."""
        self.told = True
        """Whether what the arguments look like tells all."""

    def tensor(self, tensor: torch.Tensor, look: tuple[Any, ...]) -> None:
        """A tensor among the arguments, and what it is a view of. Where in its memory it begins means nothing to a result."""
        self.told = self.told and type(tensor) in _TENSORS and not _named(tensor)
        self.storages.append(look[0])
        self.parts.append(look[1:4])

    def value(self, value: Any) -> None:
        """Any other argument; 1, 1.0 and True are three."""
        kind = type(value)
        if kind in _VALUES:
            self.parts += (kind, value)
        else:
            self.told = False

    def begin(self, part: str | int) -> None:
        """What follows belongs to an argument by name, or to a list of so many."""
        self.parts.append(part)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What an operator made."""

    made: tuple[Dense, ...]
    """Its results; empty for one that changes its first argument and returns it."""
    several: bool
    """Whether it returns a tuple."""


class Results:
    """The answers of one trace."""

    def __init__(self) -> None:
        self._answers: dict[Any, _Answer] = {}

    def of(self, asked: Asked, call: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """What `call` returns on tensors without data, an operator of torch's or what stands in its place. Raises as it does."""
        overload = about(call) if isinstance(call, torch._ops.OpOverload) else None
        known = overload is not None and (overload.makes or (overload.changes and _apart(asked.storages)))
        if overload is None or not known or not asked.told:
            return call(*args, **kwargs)
        key = (*asked.parts, torch.get_default_dtype())
        answer = self._answers.get(key)
        if answer is None:
            result = call(*args, **kwargs)
            answer = _changed(args[0], asked, result) if overload.changes else _made(result, asked.storages)
            if answer is not None and len(self._answers) < MOST:
                self._answers[key] = answer
            return result
        if overload.changes:
            return args[0]
        with torch._C.DisableTorchFunction():
            results = tuple(torch.empty_strided(size, stride, dtype=dtype, device=META) for size, stride, dtype in answer.made)
        return results if answer.several else results[0]


def _apart(storages: Sequence[int]) -> bool:
    """Whether the tensor that is written shares no memory with the others: torch may refuse those that overlap."""
    return storages[:1] != [] and storages[0] not in storages[1:]


def _changed(tensor: Any, asked: Asked, result: Any) -> _Answer | None:
    """The answer of an operator that has changed its first argument; None where this has become another view by it."""
    with torch._C.DisableTorchFunction():
        same = (
            result is tensor
            and (tensor.dtype, tuple(tensor.size()), tuple(tensor.stride())) == asked.parts[1]
            and tensor.untyped_storage()._cdata == asked.storages[0]
        )
    return _Answer((), False) if same else None


def _made(result: Any, known: Sequence[int]) -> _Answer | None:
    """The answer of an operator that has made something; None for what is not plain tensors in memory of their own."""
    items = result if isinstance(result, tuple) else (result,)
    with torch._C.DisableTorchFunction():
        if not all(type(item) is torch.Tensor and _plain(item) for item in items):
            return None
        storages = [*known, *(item.untyped_storage()._cdata for item in items)]
        if len(set(storages[len(known) :])) < len(items) or set(known) & set(storages[len(known) :]):
            return None
        return _Answer(tuple((tuple(t.size()), tuple(t.stride()), t.dtype) for t in items), isinstance(result, tuple))


def _plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is what `empty_strided` makes."""
    if tensor.layout is not torch.strided or tensor.storage_offset() or tensor.is_conj() or tensor.is_neg() or _named(tensor):
        return False
    alone = torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=META)
    return tensor.device == META and tensor.untyped_storage().nbytes() == alone.untyped_storage().nbytes()
