"""Records what tensors go through: a dispatch mode that writes down ATen calls, on meta tensors that answer "cuda".

Meta tensors have shapes, strides and storages but no data, so tracing needs no GPU, costs no memory, and runs at any size.
A torch-function mode above the dispatch mode (`Lie`) answers questions about devices, records literals by value, and refuses
what depends on values. The same recorder traces candidates (in the sandbox) and references (in the judge).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from rlkernel.evaluator.program.layouts import as_on_cuda
from rlkernel.evaluator.program.schema import MAX_LITERAL_BYTES, MAX_STEPS, Literal, Op, Step, Value, encode_scalar

META = torch.device("meta")
CUDA = torch.device("cuda", 0)


class Untraceable(Exception):
    """The candidate's host code needs what a trace cannot give: a tensor's value, an address, an unknown operator."""


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Steps of one phase (`__init__` or one `forward`), and the ids of the tensors seen so far."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.steps: list[Step] = []
        self._ids: dict[int, int] = {}
        self._alive: list[torch.Tensor] = []
        self._by_storage: dict[int, int] = {}
        """Storage -> the first id that lives in it, to reach tensors that were made behind the recorder's back."""

    def __len__(self) -> int:
        """Ids given so far."""
        return len(self._alive)

    def phase(self) -> list[Step]:
        """Hand over the steps recorded so far and start a new phase; ids go on."""
        steps, self.steps = self.steps, []
        return steps

    def bind(self, tensor: torch.Tensor) -> int:
        """Give `tensor` an id: an input, a literal or a result."""
        number = len(self._alive)
        self._alive.append(tensor)
        self._ids[id(tensor)] = number
        with torch._C.DisableTorchFunction():
            self._by_storage.setdefault(tensor.untyped_storage()._cdata, number)
        return number

    def id_of(self, tensor: torch.Tensor) -> int:
        number = self._ids.get(id(tensor))
        if number is not None:
            return number
        with torch._C.DisableTorchFunction():
            base = self._by_storage.get(tensor.untyped_storage()._cdata)
            if base is None:
                raise Untraceable("a tensor was made in a way that the trace does not see")
            if tensor.dtype != self._alive[base].dtype:
                raise Untraceable("a tensor shares memory with one of another dtype in a way that the trace does not see")
            args: tuple[Value, ...] = ({"t": base}, list(tensor.size()), list(tensor.stride()), tensor.storage_offset())
        number = self.bind(tensor)
        self._append(Op("aten.as_strided.default", args, {}, (number,)))
        return number

    def _append(self, step: Step) -> None:
        if len(self.steps) >= MAX_STEPS:
            raise Untraceable(f"more than {MAX_STEPS} operations")
        self.steps.append(step)

    def launch(self, step: Step) -> None:
        self._append(step)

    def literal(self, real: torch.Tensor) -> torch.Tensor:
        """Record a small tensor by value; returns the meta tensor that stands for it."""
        with _disable_current_modes():
            real = real.detach().cpu().contiguous()
            if real.numel() * real.element_size() > MAX_LITERAL_BYTES:
                raise Untraceable(f"a literal tensor of {real.numel()} elements; build large tensors with operators")
            raw = real.reshape(-1).view(torch.uint8).numpy().tobytes() if real.numel() else b""
            stand_in = torch.empty_like(real, device=META)
        number = self.bind(stand_in)
        dtype = str(real.dtype).removeprefix("torch.")
        self._append(Literal(number, dtype, tuple(real.shape), base64.b64encode(raw).decode()))
        return stand_in

    def encode(self, value: Any) -> Value:
        """Arguments of an operator as Program values."""
        if isinstance(value, torch.Tensor):
            if value.device.type != "meta":
                value = self.literal(value)
            return {"t": self.id_of(value)}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.device):
            return {"device": True}
        if isinstance(value, torch.layout):
            return {"layout": str(value).removeprefix("torch.")}
        if isinstance(value, torch.memory_format):
            return {"memory_format": str(value).removeprefix("torch.")}
        if isinstance(value, (list, tuple)):
            return [self.encode(item) for item in value]
        try:
            return encode_scalar(value)
        except TypeError:
            raise Untraceable(f"an operator takes a {type(value).__name__}, which the trace cannot record") from None

    def record_call(self, name: str, call: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Run `call` on meta tensors and write it down under `name`."""
        encoded_args = tuple(self.encode(a) for a in args)
        encoded_kwargs = {k: self.encode(v) for k, v in kwargs.items()}
        result = as_on_cuda(name, [v for v in [*args, *kwargs.values()] if isinstance(v, torch.Tensor)], call(*args, **kwargs))
        outs: list[int | None] = []
        for item in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(item, torch.Tensor):
                known = self._ids.get(id(item))
                outs.append(self.bind(item) if known is None else known)
            else:
                outs.append(None)
        self._append(Op(name, encoded_args, encoded_kwargs, tuple(outs)))
        return result

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = dict(kwargs or {})
        if _composite(func):  # inference mode hands these over whole, and whole their cost is not known
            with self:
                return func.decompose(*args, **kwargs)
        name = str(func)
        if name in ("aten._local_scalar_dense.default", "aten.equal.default", "aten.is_nonzero.default"):
            raise Untraceable("the host reads a tensor's value (.item(), bool(), .tolist() or a comparison)")
        if any(a.name == "device" for a in func._schema.arguments):
            kwargs["device"] = META
            kwargs.pop("pin_memory", None)
        if not any(isinstance(a, torch.Tensor) for a in args) and "generator" in kwargs:
            kwargs.pop("generator")
        try:
            return self.record_call(name, func, args, kwargs)
        except NotImplementedError as error:
            raise Untraceable(f"{name} cannot be traced: its result depends on values") from error


def _composite(func: Any) -> bool:
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


def _on_meta(value: Any) -> Any:
    """Devices inside arguments, replaced by meta."""
    if isinstance(value, torch.device):
        return META
    if isinstance(value, str) and (value in ("cuda", "cpu") or value.startswith("cuda:")):
        return META
    if isinstance(value, (list, tuple)) and any(isinstance(v, torch.device) for v in value):
        return type(value)(_on_meta(v) for v in value)
    return value


_VALUES = {
    torch.Tensor.item, torch.Tensor.tolist, torch.Tensor.numpy, torch.Tensor.__bool__, torch.Tensor.__float__,
    torch.Tensor.__int__,
    torch.Tensor.__array__, torch.Tensor.__index__, torch.Tensor.__complex__, torch.equal, torch.allclose, torch.Tensor.allclose,
    torch.Tensor.equal, torch.is_nonzero, torch.Tensor.is_nonzero,
}  # fmt: skip
_ADDRESSES = {torch.Tensor.data_ptr, torch.Tensor.untyped_storage, torch.Tensor.storage, torch.Tensor.share_memory_}
_LITERALS = {torch.tensor, torch.as_tensor, torch.asarray, torch.from_numpy, torch.scalar_tensor, torch.Tensor.new_tensor}
_MOVES = {torch.Tensor.cuda, torch.Tensor.cpu}
# Operators that choose a backend by device: recorded whole, so that they replay on another device.
_WHOLE: dict[Any, Any] = {
    torch.nn.functional.scaled_dot_product_attention: torch.ops.aten.scaled_dot_product_attention.default,
    torch.dropout: torch.ops.aten.dropout.default,
}


class Lie(TorchFunctionMode):
    """Answers as a CUDA device would, for tensors that are meta."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = dict(kwargs or {})
        answer = _PROPERTIES.get(func)
        if answer is not None and len(args) == 1:
            return answer
        if func in _VALUES:
            raise Untraceable(f"the host reads a tensor's value ({getattr(func, '__name__', 'conversion')})")
        if func in _ADDRESSES:
            raise Untraceable(f"the host reads a tensor's address or storage (.{func.__name__}())")
        if func in _MOVES:
            return args[0]
        if func is torch.get_default_device:
            return CUDA
        if func in _LITERALS:
            data = args[1] if func is torch.Tensor.new_tensor else args[0]
            if isinstance(data, torch.Tensor):
                return data.to(kwargs["dtype"]) if kwargs.get("dtype") is not None else data
            if func is torch.Tensor.new_tensor:
                kwargs.setdefault("dtype", args[0].dtype)
                func, args = torch.tensor, args[1:]
            kwargs.pop("device", None)
            kwargs.pop("pin_memory", None)
            grad = kwargs.pop("requires_grad", False)
            with _disable_current_modes():
                real = func(*args, **kwargs)
            return self.recorder.literal(real).requires_grad_(grad)
        whole = _WHOLE.get(func)
        if whole is not None:
            with _disable_current_modes():
                return self.recorder.record_call(str(whole), whole, args, kwargs)
        if "device" in kwargs:
            kwargs["device"] = None if kwargs["device"] is None else META
        if "generator" in kwargs and kwargs["generator"] is not None:
            raise Untraceable("random operators with their own generator; use the default one")
        return func(*[_on_meta(a) for a in args], **kwargs)


_PROPERTIES: dict[Any, Any] = {
    vars(torch.Tensor.__base__)["device"].__get__: CUDA,
    vars(torch.Tensor.__base__)["is_cuda"].__get__: True,
    vars(torch.Tensor.__base__)["is_meta"].__get__: False,
    vars(torch.Tensor.__base__)["is_cpu"].__get__: False,
    torch.Tensor.get_device: 0,
}


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Everything inside is recorded, in no_grad mode, as both sides are judged."""
    with torch.no_grad(), recorder, Lie(recorder):
        yield


def stand_in(recorder: Recorder, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A fresh input: a meta tensor with its own storage, bound to an id."""
    with _disable_current_modes():
        tensor = torch.empty_strided(shape, stride, dtype=dtype, device=META)
    recorder.bind(tensor)
    return tensor
