"""What the code of a reference file finds around it, and which of its settings are undone behind it.

A file may set torch's defaults, switch gradients off or name a GPU. Its defaults hold wherever its code runs, as they would in a
process of its own, and nowhere else: other files are judged in the same process. Where there is no GPU, the host is in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel import autocast

NAMES_A_GPU = "cuda"
"""The word that a file's text has where it may ask for a GPU."""
_OF_A_DEFAULT: Any = DeviceContext.__torch_function__


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a file has set for all tensors that it makes and of which it says no more."""

    dtype: torch.dtype = torch.float32
    device: torch.device | None = None
    """None: that of whoever runs the file."""


USUAL = Defaults()


def _default_device() -> torch.device | None:
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def _product_precision() -> str | None:
    """The precision of float32 products, which a host with such instructions may lower to bfloat16; None where torch does not say
    it, because code has used its newer names."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def _set_product_precision(value: str | None) -> None:
    torch.set_float32_matmul_precision(value or "highest")


_SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (_default_device, torch.set_default_device),
    (torch.is_grad_enabled, torch._C._set_grad_enabled),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch.get_num_threads, torch.set_num_threads),
    (_product_precision, _set_product_precision),
)
"""How settings of the process are read and set that a file may change."""


def as_set() -> Defaults:
    """The defaults that hold now."""
    return Defaults(torch.get_default_dtype(), _default_device())


@contextmanager
def surroundings(defaults: Defaults = USUAL) -> Iterator[None]:
    """Inside, code of a file runs that has set these defaults. Settings of the process are as before afterwards, whatever the
    code does, and tensors that it asks for on a GPU are on the host where there is none."""
    before = [read() for read, _ in _SETTINGS]
    try:
        _set(torch.get_default_dtype, torch.set_default_dtype, defaults.dtype)
        if defaults.device is not None:
            _set(_default_device, torch.set_default_device, defaults.device)
        if torch.cuda.is_available():
            yield
        else:
            with _host_in_place_of_a_gpu():
                yield
    finally:
        for (read, change), old in zip(_SETTINGS, before, strict=True):
            _set(read, change, old)


def surrounded(model: nn.Module, defaults: Defaults) -> nn.Module:
    """The module itself, whose calls, and those of its copies, run in the surroundings of its file."""
    kind = type(model)

    def call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        with surroundings(defaults):
            return kind.__call__(self, *args, **kwargs)

    model.__class__ = type(kind.__name__, (kind,), {"__call__": call, "__module__": kind.__module__})
    return model


def _set(read: Callable[[], Any], change: Callable[[Any], Any], value: Any) -> None:
    """Change a setting, if it is another one: to look is much faster."""
    if read() != value:
        change(value)


@contextmanager
def _host_in_place_of_a_gpu() -> Iterator[None]:
    with (
        mock.patch.object(DeviceContext, "__torch_function__", _by_default),
        mock.patch.object(torch.cuda, "synchronize", lambda device=None: None),
        mock.patch.object(torch.cuda, "current_device", lambda: 0),
        mock.patch.object(torch.cuda, "is_bf16_supported", lambda including_emulation=True: True),
        mock.patch.object(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False),
        _Here() as here,
        _Casting(here),
    ):
        yield


class _Here(TorchFunctionMode):
    """Tensors that a file asks for on "cuda" are made on the host. A device itself stays what it says: a trace reads it, too."""

    autocast: torch.dtype | None = None
    """The dtype of `torch.autocast` around the call in progress."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        self.autocast = autocast.set_dtype()
        if func is torch.Tensor.cuda or func is torch.Tensor.pin_memory:
            return args[0]
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        given = tuple(_here(value) for value in args), {key: _here(value) for key, value in (kwargs or {}).items()}
        if func is torch.nn.functional.scaled_dot_product_attention:  # which has another operator on each device
            given = autocast.cast(autocast.wanted(func.__name__, self.autocast), *given)
        return func(*given[0], **given[1])


class _Casting(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Operators take what autocast would give them on a GPU."""

    def __init__(self, here: _Here) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.here = here

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        dtype = autocast.wanted(func._schema.name.partition("::")[2], self.here.autocast)
        given = autocast.cast(dtype, args, kwargs or {})
        return func(*given[0], **given[1])


def _by_default(self: DeviceContext, *call: Any) -> Any:
    """What is made on the default device, see `DeviceContext`."""
    return _OF_A_DEFAULT(SimpleNamespace(device=_here(self.device)), *call)


def _here(value: Any) -> Any:
    named = isinstance(value, torch.device) or (isinstance(value, str) and value.partition(":")[0] == "cuda")
    return torch.device("cpu") if named and torch.device(value).type == "cuda" else value
