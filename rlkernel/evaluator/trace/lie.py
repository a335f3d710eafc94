"""What host code learns about tensors that are traced: they answer as tensors on a GPU would, and keep their values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _disable_current_modes

from rlkernel.autocast import cast, set_dtype, wanted
from rlkernel.evaluator.program import recurrent
from rlkernel.evaluator.trace.addresses import IN_A_TENSOR, has_addresses
from rlkernel.evaluator.trace.devices import CUDA, HOST, META, resolve
from rlkernel.evaluator.trace.host_numbers import UnknownValue, has_numbers, mathematics
from rlkernel.evaluator.trace.own_operators import body_of, own_operators
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable, fresh_settings
from rlkernel.evaluator.trace.wholes import CELLS, RMS_NORM, WHOLE, dropout, has_fused_cell, rms_norm
from rlkernel.patched import patched

_BASE: Any = torch.Tensor.__base__
_VALUES = {
    torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__bool__, torch.Tensor.__float__,
    torch.Tensor.__int__, torch.Tensor.__array__, torch.Tensor.__index__, torch.Tensor.__complex__, torch.equal, torch.allclose,
    torch.Tensor.allclose, torch.Tensor.equal, torch.is_nonzero, torch.Tensor.is_nonzero,
}  # fmt: skip
_ADDRESSES = {torch.Tensor.untyped_storage, torch.Tensor.storage, torch.Tensor.share_memory_}
_LITERALS = {torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy, torch.scalar_tensor, torch.Tensor.new_tensor}
_ANSWERS: dict[Any, Callable[[torch.device], Any]] = {
    vars(_BASE)["device"].__get__: lambda device: device,
    vars(_BASE)["is_cuda"].__get__: lambda device: device == CUDA,
    vars(_BASE)["is_cpu"].__get__: lambda device: device == HOST,
    vars(_BASE)["is_meta"].__get__: lambda device: device == META,
    torch.Tensor.is_pinned: lambda device: False,
    torch.Tensor.get_device: lambda device: 0 if device == CUDA else -1,
}
"""Questions about where a tensor is, and the answer from its device."""
_SHAPES = frozenset({
    *(vars(_BASE)[name].__get__ for name in ("shape", "dtype", "ndim", "layout", "requires_grad")),
    torch.Tensor.stride, torch.Tensor.size, torch.Tensor.dim, torch.Tensor.numel, torch.Tensor.storage_offset,
    torch.Tensor.element_size, torch.Tensor.is_floating_point,
})  # fmt: skip
"""Questions that a meta tensor answers as any other would. A launch may ask fifty of them, and a forward launch thousands of
times."""
_NAMED = {
    torch.device, torch._C._nn._parse_to, torch.get_default_device, torch.nn.functional.dropout, torch.Tensor.data_ptr,
    torch.Tensor.type, torch.Tensor.pin_memory, torch.Tensor.cpu, torch.Tensor.cuda, torch.Tensor.to,
}  # fmt: skip
"""What `Lie` asks for by name."""


@functools.cache
def _is_usual(func: Any) -> bool:
    """Whether a function of torch's is none of those of which `Lie` knows more, as nearly all are."""
    known = _NAMED | _VALUES | _ADDRESSES | _LITERALS | _ANSWERS.keys() | set(RMS_NORM) | CELLS.keys() | WHOLE.keys()
    return func not in known and not isinstance(func, (torch._ops.OpOverload, torch._ops.OpOverloadPacket))


class Lie(TorchFunctionMode):
    """Answers as a CUDA device would, for tensors that are meta."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        if func in _SHAPES:
            return func(*args, **kwargs) if kwargs else func(*args)
        kwargs = dict(kwargs) if kwargs else {}
        self.recorder.autocast = set_dtype()
        if _is_usual(func) and kwargs.get("generator") is None:
            return self._placed(func, args, kwargs)
        if func is torch.device:
            return torch.device("cuda", args[0]) if args and isinstance(args[0], int) else func(*args, **kwargs)
        if func is torch._C._nn._parse_to:  # names a device, and makes nothing there
            return func(*args, **kwargs)
        if func in _VALUES:
            return self.recorder.reading.answer(func, args, kwargs)
        if func is torch.Tensor.data_ptr:
            self.recorder.ids.of(args[0])  # which keeps its memory
            return self.recorder.ids.addresses.of(args[0])
        if func in _ADDRESSES:
            raise Untraceable(f"the host reads a tensor's address or storage (.{func.__name__}())")
        if func is torch.get_default_device:
            return self.recorder.devices.default
        if args and isinstance(args[0], torch.Tensor):
            answer = self._answer(func, args, kwargs)
            if answer is not NotImplemented:
                return answer
        if func in _LITERALS:
            return self._literal(func, args, kwargs)
        if func is torch.nn.functional.dropout:
            func, args = dropout(*args, **kwargs)
            if not args[2]:
                return args[0]
            kwargs = {}
        if func in RMS_NORM and (given := rms_norm(*args, **kwargs)) is not None:
            with _disable_current_modes():
                func(*args, **kwargs)  # which raises what torch says of wrong shapes, as the operator itself does not
            return self._whole(torch.ops.aten._fused_rms_norm.default, given, {})[0]
        if func in CELLS and self.recorder.autocast is None and has_fused_cell(*args, **kwargs):
            with _disable_current_modes():
                func(*args, **kwargs)  # which raises what torch says of wrong shapes
            return CELLS[func](*args, **kwargs)
        whole = WHOLE.get(func)
        if whole is not None:
            return self._whole(whole, args, kwargs)
        if kwargs.get("generator") is not None:
            if self.recorder.reading.call_began is not None:
                raise Untraceable("random operators with their own generator; use the default one")
            kwargs.pop("generator")  # before forward only shapes count: the numbers are those of the reference's own module
        body = body_of(func)
        if body is not None:
            with self:
                return body(*args, **kwargs)
        return self._placed(func, args, kwargs)

    def _whole(self, whole: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Record an operator that is made of others as one."""
        call, name = whole, str(whole)
        args, kwargs = cast(wanted(name.split(".")[1], self.recorder.autocast), args, kwargs)
        if recurrent.is_recurrent(name):
            if recurrent.is_packed(name.split(".")[1], args):
                raise UnknownValue("the lengths of a packed sequence are values; pad it to a dense batch")
            call = recurrent.without_data
        with _disable_current_modes():
            return self.recorder.record_call(name, call, args, kwargs)

    def _answer(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """What is asked of one tensor; NotImplemented for what is no question."""
        tensor, devices = args[0], self.recorder.devices
        if len(args) == 1:
            answer = _ANSWERS.get(func)
            if answer is not None:
                return answer(devices.of(tensor))
            if func is torch.Tensor.type and not kwargs:
                with _disable_current_modes():
                    name = str(torch.empty(0, dtype=tensor.dtype).type())
                return name.replace("torch.", "torch.cuda.") if devices.of(tensor) == CUDA else name
        if func is torch.Tensor.pin_memory:
            return tensor
        if func is torch.Tensor.cpu:
            return self._moved(tensor, tensor, HOST)
        if func is torch.Tensor.cuda:
            return self._moved(tensor, tensor, CUDA)
        if func is torch.Tensor.to:
            return self._to(tensor, args[1:], kwargs)
        return NotImplemented

    def _to(self, tensor: torch.Tensor, args: Any, kwargs: dict[str, Any]) -> torch.Tensor:
        """`Tensor.to`, with a device, a dtype or another tensor first."""
        target = None
        other = args[0] if args else kwargs.get("other")
        if isinstance(other, torch.Tensor):
            target = self.recorder.devices.of(other)
        elif isinstance(other, (str, int, torch.device)):
            target = resolve(other)
            args = (META, *args[1:])
        if kwargs.get("device") is not None:
            target = resolve(kwargs["device"])
            kwargs["device"] = META
        return self._moved(tensor, tensor.to(*args, **kwargs), target)

    def _moved(self, tensor: torch.Tensor, result: torch.Tensor, target: torch.device | None) -> torch.Tensor:
        """`result` of moving `tensor`: memory of its own where it was, or has come to be, on another device."""
        devices = self.recorder.devices
        target = devices.of(tensor) if target is None else target
        if result is tensor and devices.of(tensor) == target:
            return result
        if result is tensor and not devices.arriving:
            result = tensor.clone()
        devices.move(result, target)
        return result

    def _literal(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """A tensor made of numbers: recorded by value."""
        device = kwargs.pop("device", None)
        data = args[1] if func is torch.Tensor.new_tensor else args[0] if args else kwargs.get("data")
        if isinstance(data, torch.Tensor):
            moved = data.to(kwargs["dtype"]) if kwargs.get("dtype") is not None else data
            return self._moved(data, moved, None if device is None else resolve(device))
        target = resolve(device) if device is not None else self.recorder.devices.default
        if func is torch.Tensor.new_tensor:
            target = resolve(device) if device is not None else self.recorder.devices.of(args[0])
            kwargs.setdefault("dtype", args[0].dtype)
            func, args = torch.tensor, args[1:]
        kwargs.pop("pin_memory", None)
        grad = kwargs.pop("requires_grad", False)
        if has_addresses(data):
            raise Untraceable(IN_A_TENSOR)
        if has_numbers(data):
            return self._computed(data, kwargs.get("dtype"), target).requires_grad_(grad)
        with _disable_current_modes():
            real = func(*args, **kwargs)
        made = self.recorder.literal(real)
        self.recorder.devices.move(made, target)
        return made.requires_grad_(grad)

    def _computed(self, data: Any, dtype: torch.dtype | None, target: torch.device) -> torch.Tensor:
        """A tensor made of numbers that are known when the weights are."""
        if isinstance(data, (list, tuple)):
            return torch.stack([self._computed(item, dtype, target) for item in data])
        kind = torch.get_default_dtype() if isinstance(data, float) else torch.int64
        made = torch.full((), data, dtype=dtype or kind)
        self.recorder.devices.move(made, target)
        return made

    def _placed(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Any other call, with the device that it names replaced by meta and remembered for what it makes."""
        named = kwargs.get("device")
        if named is None:
            named = next((a for a in args if isinstance(a, torch.device) or _names_device(a)), None)
        if "device" in kwargs:
            kwargs["device"] = None if kwargs["device"] is None else META
        if named is None:
            return func(*args, **kwargs)
        devices = self.recorder.devices
        before, devices.asked = devices.asked, resolve(named)
        try:
            return func(*[META if isinstance(a, torch.device) or _names_device(a) else a for a in args], **kwargs)
        finally:
            devices.asked = before


def _names_device(value: Any) -> bool:
    return isinstance(value, str) and (value in ("cuda", "cpu") or value.startswith("cuda:"))


@contextmanager
def _own_buffers(recorder: Recorder) -> Iterator[None]:
    """Buffers are known as such from when they are registered."""
    register = nn.Module.register_buffer

    def note(self: nn.Module, name: str, tensor: torch.Tensor | None, persistent: bool = True) -> None:
        register(self, name, tensor, persistent)
        if tensor is not None:
            recorder.reading.state.add(recorder.ids.storage(recorder.ids.of(tensor)))

    with patched(nn.Module, register_buffer=note):
        yield


@contextmanager
def _default_devices(recorder: Recorder) -> Iterator[None]:
    """`torch.set_default_device` and `with torch.device(...)` set where the recorder makes tensors."""
    outer: list[torch.device | None] = []

    def enter(self: Any) -> Any:
        outer.append(recorder.devices.chosen)
        recorder.devices.chosen = resolve(self.device)
        return self

    def leave(self: Any, *error: object) -> None:
        recorder.devices.chosen = outer.pop()

    with patched(DeviceContext, __enter__=enter, __exit__=leave):
        try:
            yield
        finally:
            torch._GLOBAL_DEVICE_CONTEXT.device_context = None


@contextmanager
def _arrays() -> Iterator[None]:
    """Arrays of numpy become literals; `torch.from_numpy` itself would not be seen."""
    with patched(torch, from_numpy=torch.as_tensor):
        yield


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Everything inside is recorded, in no_grad mode, as both sides are judged."""
    with ExitStack() as stack:
        settings = (
            fresh_settings(),
            mathematics(),
            own_operators(),
            _own_buffers(recorder),
            _default_devices(recorder),
            _arrays(),
        )
        for context in (*settings, torch.no_grad(), recorder, Lie(recorder)):
            stack.enter_context(context)
        yield
