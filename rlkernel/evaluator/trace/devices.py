"""Where each tensor of a trace would be: all are meta tensors, and each claims to be on the GPU or on the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from rlkernel.evaluator.trace.overloads import about

META = torch.device("meta")
CUDA = torch.device("cuda", 0)
HOST = torch.device("cpu")
_ACROSS = ("copy_", "_to_copy", "copy")
"""Operators that take tensors of several devices."""
_INDEXED = ("index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index", "_unsafe_index_put")
"""Operators of which the indices may lie on the host."""


class Devices:
    """The devices that storages claim: inputs and state are on the GPU, and what host code makes is where torch puts it."""

    def __init__(self, base: torch.device = HOST) -> None:
        self.base = base
        """Where torch makes a tensor that nobody asked a device for."""
        self.chosen: torch.device | None = None
        """Where host code wants such tensors to be made, by `torch.set_default_device`."""
        self.asked: torch.device | None = None
        """The device that the call in progress names."""
        self.arriving = False
        """Whether a module is being moved to the GPU, whose tensors change their place without a copy."""
        self._elsewhere: dict[int, torch.device] = {}
        """Storage -> its device, of those that are not on the GPU."""

    @property
    def default(self) -> torch.device:
        """Where a tensor is made that nobody asked a device for."""
        return self.base if self.chosen is None else self.chosen

    def of(self, tensor: torch.Tensor) -> torch.device:
        """The device that a tensor's memory claims to be on."""
        if not self._elsewhere:
            return CUDA
        with torch._C.DisableTorchFunction():
            return self._elsewhere.get(tensor.untyped_storage()._cdata, CUDA)

    def move(self, tensor: torch.Tensor, device: torch.device) -> None:
        """Let a tensor's memory claim to be on `device`, whatever it has claimed so far."""
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()._cdata
        if device == CUDA:
            self._elsewhere.pop(storage, None)
        else:
            self._elsewhere[storage] = device

    def claim(self, result: Any, device: torch.device, args: Sequence[Any]) -> None:
        """New memory among an operator's results is on `device`; views are where they were."""
        if device == CUDA:
            return
        with torch._C.DisableTorchFunction():  # `torch.Tensor(2, 3)` comes here with the trace's own answers still on
            new = [t for t in _tensors([result]) if all(t is not own for own in _tensors(args)) and not _shares(t, args)]
        for tensor in new:
            self.move(tensor, device)

    def of_result(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> torch.device:
        """Where an operator's new tensors will be. Raises RuntimeError as torch does if its arguments lie on several devices."""
        tensors = list(_tensors([*args, *kwargs.values()]))
        if about(func).names_device:
            if self.asked is not None:
                return self.asked
            if not tensors:
                named = kwargs.get("device")
                return CUDA if named is not None and named.type == "meta" else self.default
        if not tensors:
            return self.default
        if not self._elsewhere:
            return CUDA
        name = func._schema.name.partition("::")[2]
        if name in _ACROSS or name in _INDEXED:
            return self.of(tensors[0])
        found = {self.of(tensor) for tensor in tensors if tensor.dim() > 0} or {self.of(tensor) for tensor in tensors}
        if (
            len(found) > 1
            and torch.Tag.pointwise in func.tags
            and max(tensor.dim() for tensor in tensors) == 0
            and not (about(func).changes and self.of(tensors[0]) != CUDA)
        ):
            return CUDA  # who works by elements takes a number of the host along to one of the GPU; who stacks both does not
        if len(found) > 1:
            names = " and ".join(sorted(map(str, found), reverse=True))
            raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {names}!")
        return found.pop()


def resolve(device: Any) -> torch.device:
    """What host code names as a device, as the real machine with its one GPU would take it. Raises RuntimeError."""
    with torch._C.DisableTorchFunction():
        found = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        if found.type != "cuda":
            return found
        if found.index not in (None, 0):
            raise RuntimeError("CUDA error: invalid device ordinal")
    return CUDA


def _tensors(values: Sequence[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _shares(tensor: torch.Tensor, args: Sequence[Any]) -> bool:
    storage = tensor.untyped_storage()._cdata
    return any(own.untyped_storage()._cdata == storage for own in _tensors(args))
