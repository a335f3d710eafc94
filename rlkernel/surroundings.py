"""What the code of a reference file finds around it, and which of its settings are undone behind it.

A file may set torch's defaults, switch gradients off or name a GPU. Its defaults hold wherever its code runs, as they would in a
process of its own, and nowhere else: other files are judged in the same process. Where there is no GPU, the host is in its place.
What a file has compiled by `torch.compile` runs eagerly.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel import autocast
from rlkernel.cuda_objects import Generator, answers, properties
from rlkernel.patched import patched
from rlkernel.types import FILE

NAMES_A_GPU = "cuda"
"""The word that a file's text has where it may ask for a GPU."""
SETS = ("torch.backends", "torch.set_", "torch.use_")
"""What a file's text has where it may change settings of the process."""
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


def _cudnn() -> tuple[bool, ...]:
    return torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic


def _set_cudnn(values: tuple[bool, ...]) -> None:
    torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = values


def _cudnn_precision() -> bool | None:
    """Whether cuDNN may take tf32; None where torch does not say it, see `_product_precision`."""
    try:
        return torch.backends.cudnn.allow_tf32
    except RuntimeError:
        return None


def _set_cudnn_precision(value: bool | None) -> None:
    torch.backends.cudnn.allow_tf32 = value is not False


def _attention() -> tuple[bool, ...]:
    """Which kernels `scaled_dot_product_attention` may choose among."""
    of: Any = torch.backends.cuda
    return of.flash_sdp_enabled(), of.mem_efficient_sdp_enabled(), of.math_sdp_enabled(), of.cudnn_sdp_enabled()


def _set_attention(values: tuple[bool, ...]) -> None:
    of = torch.backends.cuda
    changes = (of.enable_flash_sdp, of.enable_mem_efficient_sdp, of.enable_math_sdp, of.enable_cudnn_sdp)
    for change, value in zip(changes, values, strict=True):
        change(value)


_SMALL, _ONE = np.float32(1e-40), np.float32(1.0)


def _flushes_denormals() -> bool:
    """Whether numbers next to nothing are zeros, which torch does not say."""
    return not _SMALL * _ONE


_SETTINGS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (_default_device, torch.set_default_device),
    (torch.is_grad_enabled, torch._C._set_grad_enabled),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch.get_num_threads, torch.set_num_threads),
    (_product_precision, _set_product_precision),
    (_cudnn, _set_cudnn),
    (_cudnn_precision, _set_cudnn_precision),
    (_attention, _set_attention),
    (_flushes_denormals, torch.set_flush_denormal),
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
        with (
            patched(torch, compile=_not_compiled),
            nullcontext() if torch.cuda.is_available() else _host_in_place_of_a_gpu(),
        ):
            yield
    finally:
        for (read, change), old in zip(_SETTINGS, before, strict=True):
            _set(read, change, old)


def _not_compiled(model: Any = None, **settings: Any) -> Any:
    """In place of `torch.compile`: answers are compared with what PyTorch does eagerly."""
    return partial(_not_compiled, **settings) if model is None else model


def surrounded(model: nn.Module, defaults: Defaults) -> nn.Module:
    """The module itself, whose calls, and those of its copies, run in the surroundings of its file."""
    kind = type(model)

    def call(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        around = torch.get_default_dtype()  # where that is not torch's own, a call is widened, and stays so
        with surroundings(defaults if around is USUAL.dtype else replace(defaults, dtype=around)):
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
        patched(DeviceContext, __torch_function__=_by_default),
        patched(torch.cuda, **_ANSWERS),
        patched(torch.cuda.amp.common, amp_definitely_not_available=lambda: False),
        patched(torch.backends.cudnn, is_acceptable=lambda tensor: False),
        patched(torch, Generator=Generator),
        _Here() as here,
        _Casting(here),
    ):
        yield


def _asked_by_a_file() -> bool:
    """Whether a file itself asks who calls this. A library that it calls is told what is so: it would load a model's weights onto
    the GPU, in threads of its own, past all that stands in a GPU's place."""
    return sys._getframe(2).f_globals.get("__name__") == FILE


_CARD = properties(name="NVIDIA H200", arch=90, memory=141 * 10**9, processors=132, l2=60 << 20, shared=232_448)
_ANSWERS: dict[str, Any] = {**answers(_CARD), "is_available": lambda: _asked_by_a_file()}
"""What `torch.cuda` answers where the host is in a GPU's place. A file that finds one available asks on what that can do."""
_BASE: Any = torch._C.TensorBase
_CLAIMS: dict[Any, Any] = {
    vars(_BASE)["is_cuda"].__get__: True,
    vars(_BASE)["is_cpu"].__get__: False,
    vars(_BASE)["device"].__get__: torch.device("cuda", 0),
    torch.Tensor.get_device: 0,
}
"""What a tensor says of where it is."""


class _Here(TorchFunctionMode):
    """Tensors that a file asks for on "cuda" are made on the host. A device itself stays what it says: a trace reads it, too."""

    autocast: torch.dtype | None = None
    """The dtype of `torch.autocast` around the call in progress."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        self.autocast = autocast.set_dtype()
        if func is torch.Tensor.cuda or func is torch.Tensor.pin_memory:
            return args[0]
        if func in _CLAIMS and _asked_by_a_file():
            return _CLAIMS[func]
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
