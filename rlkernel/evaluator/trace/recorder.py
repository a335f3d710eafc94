"""Records what host code asks of torch, as steps of a Program.

`Recorder` is a dispatch mode: every ATen operator reaches it on meta tensors (shapes, no data), runs there for its shape and is
written down. So tensors have shapes and storages but no data: tracing needs no GPU, costs no memory, and runs at any size. The
mode in `lie` stands above it and answers the questions that host code asks. Both trace candidates (in the sandbox) and
references (in the judge).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from rlkernel.evaluator.program.distinct_values import DISTINCT
from rlkernel.evaluator.program.layouts import as_on_cuda, is_laid_out
from rlkernel.evaluator.program.operators import operator
from rlkernel.evaluator.program.schema import MAX_ALTERNATIVES, MAX_LITERAL_BYTES, MAX_STEPS, Launch, Literal, Op, Scalar, Step
from rlkernel.evaluator.program.switches import switches_of
from rlkernel.evaluator.program.value_lengths import BY_VALUES
from rlkernel.evaluator.program.values import DeviceRef, MalformedProgram, ScalarRef, TorchName, Value
from rlkernel.evaluator.program.without_data import CALLS
from rlkernel.evaluator.trace import precision
from rlkernel.evaluator.trace.addresses import FIRST, IN_A_TENSOR
from rlkernel.evaluator.trace.devices import CUDA, HOST, META, Devices
from rlkernel.evaluator.trace.host_numbers import HostNumbers, UnknownValue, Untraceable
from rlkernel.evaluator.trace.identities import Identities
from rlkernel.evaluator.trace.looks import encoded, look_of, look_unwatched
from rlkernel.evaluator.trace.overloads import about
from rlkernel.evaluator.trace.reading import Reading
from rlkernel.evaluator.trace.refusals import refuse
from rlkernel.evaluator.trace.results import Asked, Results

_READS = frozenset({"aten._local_scalar_dense.default", "aten.equal.default", "aten.is_nonzero.default"})
_SETS = frozenset({"aten.set_.source_Tensor", "aten.set_data.default"})
_CHECKS = frozenset({"aten._linalg_check_errors.default"})
"""Operators that look at values, raise where these are wrong, and make nothing."""

_AS_LONG_AS_KNOWN = {**BY_VALUES, **DISTINCT}
"""Operators in whose place a reference has others, which are told how much they make."""


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Steps of one phase (`__init__` or one `forward`), of tensors by their ids."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch would ask in each step whether its compiler is at work. A candidate has none (`shims`)."""
        return False

    def __init__(self, *, keeps_switches: bool = False, trusted: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keeps_switches = keeps_switches
        """Whether what host code sets for products and for cuDNN is recorded: of a candidate, in a process of its own."""
        self.trusted = trusted
        """Whether it is a reference, of whose tables only the shapes matter: its own module has the values."""
        self.steps: list[Step] = []
        self.history: list[Step] = []
        """The steps of all phases."""
        self._alternatives = 0
        """The configurations of this phase's launches."""
        self.ids = Identities(self._append)
        self.numbers = HostNumbers(self._scalar)
        self.reading = Reading(self)
        self.devices = Devices(CUDA if trusted else HOST)  # a reference's own tensors are put where its inputs are
        self.captured = False
        """Whether a CUDA graph was captured."""
        self.autocast: torch.dtype | None = None
        """The dtype of `torch.autocast` around the call in progress, which a dispatch mode itself is not told."""
        self._results = Results()

    def phase(self) -> list[Step]:
        """Hand over the steps recorded so far and start a new phase; ids go on."""
        steps, self.steps, self._alternatives = self.steps, [], 0
        return steps

    def _append(self, step: Step) -> None:
        if len(self.steps) >= MAX_STEPS:
            raise Untraceable(f"more than {MAX_STEPS} operations")
        self.steps.append(step)
        self.history.append(step)

    def _scalar(self, step: Scalar) -> None:
        """A number of the host: in `__init__` in its place, in forward before the call."""
        (self._append if self.reading.call_began is None else self.reading.steps.append)(step)

    def launch(self, step: Step) -> None:
        """Record a launch, or what comes with one. Raises Untraceable."""
        if isinstance(step, Launch):
            self._alternatives += len(step.configs)
            if self._alternatives > MAX_ALTERNATIVES:
                raise Untraceable("forward records too much: launch fewer kernels, with fewer configurations")
        self._append(step)

    def taken_back(self, since: int) -> list[Step]:
        """The steps of this phase from the `since`-th one on, which are no longer recorded."""
        found = self.steps[since:]
        del self.steps[since:], self.history[len(self.history) - len(found) :]
        return found

    def literal(self, real: torch.Tensor) -> torch.Tensor:
        """Record a small tensor by value; returns the meta tensor that stands for it."""
        with torch._C.DisableTorchFunction(), _disable_current_modes():
            real = real.detach().cpu().contiguous()
            dtype = str(real.dtype).removeprefix("torch.")
            if real.numel() * real.element_size() > MAX_LITERAL_BYTES:
                if self.trusted:
                    return self._table(torch.empty_like(real, device=META), dtype)
                raise Untraceable(f"a literal tensor of {real.numel()} elements; build large tensors with operators")
            addresses = self.ids.addresses
            if addresses.asked and real.dtype is torch.int64 and any(map(addresses.gave, real.reshape(-1).tolist())):
                raise Untraceable(IN_A_TENSOR)
            raw = real.reshape(-1).view(torch.uint8).numpy().tobytes() if real.numel() else b""
            stand_in = torch.empty_like(real, device=META)
        number = self.ids.bind(stand_in)
        self._append(Literal(number, dtype, tuple(real.shape), base64.b64encode(raw).decode()))
        return stand_in

    def _table(self, stand_in: torch.Tensor, dtype: str) -> torch.Tensor:
        """A reference's tensor without its values: with zeros, which are valid places, too."""
        kind, number = TorchName("dtype", dtype), self.ids.bind(stand_in)
        self._append(Op("aten.zeros.default", (list(stand_in.shape),), {"dtype": kind, "device": DeviceRef()}, (number,)))
        return stand_in

    def _encoded(self, value: Any, asked: Asked) -> Value:
        """An argument of an operator as a Program value, of which `asked` is told. Torch's functions are not watched."""
        kind = type(value)
        if kind is int or kind is float:
            if value >= FIRST and kind is int and self.ids.addresses.gave(value):
                raise Untraceable(IN_A_TENSOR)
            asked.value(value)
            return self.numbers.known(value)
        if isinstance(value, torch.Tensor):
            if value.device.type != "meta":
                value, asked.told = self.literal(value), False
            look = look_unwatched(value)
            asked.tensor(value, look)
            return self.ids.ref_as(value, look)
        if isinstance(value, (list, tuple)):
            asked.begin(len(value))
            return [self._encoded(item, asked) for item in value]
        asked.value(value)
        return self.numbers.known(value) if isinstance(value, (int, float)) else encoded(value)

    def record_call(self, name: str, call: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Run `call` on meta tensors and write it down under `name`. Raises Untraceable for what could not be replayed."""
        try:
            operator(name)
        except MalformedProgram as error:
            raise Untraceable(str(error)) from error
        asked = Asked(name)
        with torch._C.DisableTorchFunction():
            encoded_args = tuple([self._encoded(value, asked) for value in args])
            encoded_kwargs: dict[str, Value] = {}
            for key, value in kwargs.items():
                asked.begin(key)
                encoded_kwargs[key] = self._encoded(value, asked)
        try:
            result = self._results.of(asked, call, args, kwargs)
        except RuntimeError:
            if any(isinstance(item, ScalarRef) for size in encoded_args if isinstance(size, list) for item in size):
                raise UnknownValue("a size depends on a parameter's value; make it a number of __init__") from None
            raise
        with torch._C.DisableTorchFunction():
            if is_laid_out(name):
                result = as_on_cuda(name, [v for v in [*args, *kwargs.values()] if isinstance(v, torch.Tensor)], result)
            items = result if isinstance(result, (tuple, list)) else (result,)
            outs = tuple([self.ids.of_result(item) if isinstance(item, torch.Tensor) else None for item in items])
        self._append(Op(name, encoded_args, encoded_kwargs, outs, switches_of(name) if self.keeps_switches else ()))
        return result

    def _as_long_as_known(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """What a reference's operator makes where values say how much. Raises Untraceable where nobody knows how long that is."""
        try:
            with self:
                return _AS_LONG_AS_KNOWN[about(func).name](self.reading.number_of, *args, **kwargs)
        except Untraceable:
            if about(func).changes:
                return None
            raise

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = dict(kwargs) if kwargs else {}
        overload = about(func)
        if overload.composite:  # inference mode hands these over whole, and whole their cost is not known
            with self:
                return func.decompose(*args, **kwargs)
        name = overload.name
        if name in _READS:
            return self.reading.answer(func, args, kwargs)
        if name in _CHECKS:
            return None
        if name in _SETS or func.namespace == "profiler":
            return func(*args, **kwargs)  # what `set_` does is seen by what the tensor is afterwards
        if self.trusted and name in _AS_LONG_AS_KNOWN and (found := self._as_long_as_known(func, args, kwargs)) is not None:
            return found
        if name in DISTINCT:
            raise UnknownValue(f"{name} cannot be traced: its result depends on values")
        if self.autocast is not None:
            args, kwargs = precision.cast_as_autocast_would(self, self.autocast, func, args, kwargs)
        args = precision.cast_to_default(self, func, args, kwargs)
        claim = self.devices.of_result(func, args, kwargs)
        if claim == CUDA and not self.trusted:
            refuse(func, args)
        if overload.names_device:
            kwargs["device"] = META
            kwargs.pop("pin_memory", None)
        if "generator" in kwargs and not any(isinstance(a, torch.Tensor) for a in args):
            kwargs.pop("generator")
        try:
            precision.name_dtype(func, args, kwargs)
            result = self.record_call(name, CALLS.get(name, func), args, kwargs)
        except NotImplementedError as error:
            raise UnknownValue(f"{name} cannot be traced: its result depends on values") from error
        except precision.DependsOnDefault as error:
            raise Untraceable(str(error)) from error
        self.devices.claim(result, claim, args)
        return result


@contextmanager
def fresh_settings() -> Iterator[None]:
    """Code inside may change torch's defaults; they are as before afterwards, and as torch's own at the start."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def stand_in(recorder: Recorder, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """A fresh input on the GPU: a meta tensor with its own storage, bound to an id."""
    with _disable_current_modes():
        tensor = torch.empty_strided(shape, stride, dtype=dtype, device=META)
    recorder.reading.inputs.add(recorder.ids.storage(recorder.ids.bind(tensor)))
    return tensor


__all__ = ["CUDA", "META", "Recorder", "Untraceable", "fresh_settings", "look_of", "stand_in"]
