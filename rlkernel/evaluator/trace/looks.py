"""What a tensor looks like, and what a Program says of an operator's arguments that are no tensors."""

from __future__ import annotations

from typing import Any

import torch

from rlkernel.evaluator.program.values import DeviceRef, TorchName, Value
from rlkernel.evaluator.trace.host_numbers import Untraceable

Look = tuple[int, torch.dtype, tuple[int, ...], tuple[int, ...], int]
"""What a tensor is a view of: its storage, dtype, size, stride and offset."""


def look_of(tensor: torch.Tensor) -> Look:
    """The look of a tensor. Raises Untraceable for one without a storage of its own."""
    with torch._C.DisableTorchFunction():
        return look_unwatched(tensor)


def look_unwatched(tensor: torch.Tensor) -> Look:
    """The same where torch's functions are not watched."""
    try:
        storage = tensor.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError) as error:
        raise Untraceable(f"a {tensor.layout} tensor cannot be traced; use dense tensors") from error
    return storage, tensor.dtype, tuple(tensor.size()), tensor.stride(), tensor.storage_offset()  # type: ignore[return-value]


_DEVICE = DeviceRef()


def encoded(value: Any) -> Value:
    """An argument that is neither a real number, a tensor nor a list. Raises Untraceable."""
    if value is None or isinstance(value, (str, complex)):
        return value
    if isinstance(value, torch.device):
        return _DEVICE
    for kind in (torch.dtype, torch.layout, torch.memory_format):
        if isinstance(value, kind):
            return TorchName(kind.__name__, str(value).removeprefix("torch."))
    raise Untraceable(f"an operator takes a {type(value).__name__}, which the trace cannot record")
