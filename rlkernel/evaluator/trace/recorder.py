"""Records what host code asks of torch, as steps of a Program.

`Recorder` is a dispatch mode: every ATen operator reaches it on meta tensors (shapes, no data), runs there for its shape and is
written down. So tensors have shapes and storages but no data: tracing needs no GPU, costs no memory, and runs at any size. The
mode in `lie` stands above it and answers the questions that host code asks. Both trace candidates (in the sandbox) and
references (in the judge).
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from rlkernel.evaluator.program.layouts import as_on_cuda, is_laid_out
from rlkernel.evaluator.program.operators import operator
from rlkernel.evaluator.program.schema import MAX_ALTERNATIVES, MAX_LITERAL_BYTES, MAX_STEPS, Launch, Literal, Op, Scalar, Step
from rlkernel.evaluator.program.switches import switches_of
from rlkernel.evaluator.program.values import DeviceRef, MalformedProgram, ScalarRef, TensorRef, TorchName, Value
from rlkernel.evaluator.program.without_data import CALLS
from rlkernel.evaluator.trace import precision
from rlkernel.evaluator.trace.addresses import FIRST, IN_A_TENSOR, Addresses
from rlkernel.evaluator.trace.devices import CUDA, HOST, META, Devices
from rlkernel.evaluator.trace.host_numbers import HostNumbers, Untraceable
from rlkernel.evaluator.trace.looks import Look, encoded, look_of, look_unwatched
from rlkernel.evaluator.trace.overloads import about
from rlkernel.evaluator.trace.reading import Reading
from rlkernel.evaluator.trace.refusals import refuse
from rlkernel.evaluator.trace.results import Asked, Results

_READS = frozenset({"aten._local_scalar_dense.default", "aten.equal.default", "aten.is_nonzero.default"})
_SETS = frozenset({"aten.set_.source_Tensor", "aten.set_data.default"})
_CHECKS = frozenset({"aten._linalg_check_errors.default"})
"""Operators that look at values, raise where these are wrong, and make nothing."""


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Steps of one phase (`__init__` or one `forward`), and the ids of the tensors seen so far."""

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
        self.numbers = HostNumbers(self._scalar)
        self.reading = Reading(self)
        self.devices = Devices(CUDA if trusted else HOST)  # a reference's own tensors are put where its inputs are
        self.addresses = Addresses()
        self.captured = False
        """Whether a CUDA graph was captured."""
        self._places: dict[int, int] = {}
        """The memory of an input of any call -> the place of the input among its call's."""
        self._inputs: list[int] = []
        """The memory of the inputs of the call in progress."""
        self.autocast: torch.dtype | None = None
        """The dtype of `torch.autocast` around the call in progress, which a dispatch mode itself is not told."""
        self._ids: dict[int, int] = {}
        self._alive: list[tuple[torch.Tensor, Any]] = []
        """Tensors by id, and their storages, so that no address is given twice."""
        self._looks: list[Look] = []
        """What each id was a view of when it was given. A tensor can become another one without any operator: by `.data =`, by
        `swap_tensors`, and by `Module.to`, which uses them."""
        self._refs: list[TensorRef] = []
        """What a step says of each id."""
        self._results = Results()
        self._homes: dict[tuple[int, torch.dtype], int] = {}
        """Storage and dtype -> the first id there, to reach tensors that were made behind the recorder's back."""

    def __len__(self) -> int:
        """Ids given so far."""
        return len(self._alive)

    def phase(self) -> list[Step]:
        """Hand over the steps recorded so far and start a new phase; ids go on."""
        steps, self.steps, self._alternatives = self.steps, [], 0
        return steps

    def tensor(self, number: int) -> torch.Tensor:
        """The tensor with an id, as the trace has it: without data."""
        return self._alive[number][0]

    def unseen(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A tensor on the GPU that no step makes and no call is given: a kernel is compiled for it, and never launched."""
        with _disable_current_modes():
            tensor = torch.empty(shape, dtype=dtype, device=META)
        self.bind(tensor)
        return tensor

    def storage(self, number: int) -> int:
        """The identity of the memory that the tensor with an id had when it was given the id."""
        return self._looks[number][0]

    def bind(self, tensor: torch.Tensor) -> int:
        """Give `tensor` an id: an input, a literal or a result."""
        with torch._C.DisableTorchFunction():
            return self._bind(tensor, look_unwatched(tensor))

    def _bind(self, tensor: torch.Tensor, look: Look) -> int:
        number = len(self._alive)
        self._alive.append((tensor, tensor.untyped_storage()))
        self._ids[id(tensor)] = number
        self._looks.append(look)
        self._refs.append(TensorRef(number))
        self._homes.setdefault(look[:2], number)
        return number

    def id_of(self, tensor: torch.Tensor) -> int:
        """The id of what `tensor` is now, which may be another tensor than the one that it was. Raises Untraceable."""
        return self._id(tensor, look_of(tensor))

    def ref(self, tensor: torch.Tensor) -> TensorRef:
        """What a step says of a tensor. Raises Untraceable."""
        return self._refs[self.id_of(tensor)]

    def _id(self, tensor: torch.Tensor, look: Look) -> int:
        number = self._ids.get(id(tensor))
        if number is not None and self._looks[number] == look:
            return number
        home = self._homes.get(look[:2])
        if home is None:
            raise Untraceable("a tensor was made in a way that the trace does not see")
        args: tuple[Value, ...] = (TensorRef(home), list(look[2]), list(look[3]), look[4])
        number = self.bind(tensor)
        self._append(Op("aten.as_strided.default", args, {}, (number,)))
        return number

    def begin(self, inputs: Sequence[int]) -> None:
        """A call of forward begins, with inputs that have these ids. They lie where those of the last call have lain."""
        storages = list(dict.fromkeys(self.storage(number) for number in inputs))
        with torch._C.DisableTorchFunction():
            sizes = {self.storage(number): self.tensor(number).untyped_storage().nbytes() for number in inputs}
        self.addresses.inputs(storages, [sizes[storage] for storage in storages])
        self._places |= {storage: place for place, storage in enumerate(storages)}
        self._inputs = storages

    def move_inputs(self) -> None:
        """The inputs of all later calls lie where none has lain before."""
        self.addresses.move()
        self._places.clear()

    def number_now(self, number: int) -> int:
        """The id of what lies now where the tensor with this id has lain: another one where a CUDA graph has been replayed since,
        and in the memory of an input."""
        storage, dtype, *shape = look = self._looks[number]
        place = self._places.get(storage)
        if place is not None and self._inputs[place] != storage:
            home = self._homes.get((self._inputs[place], dtype))
            if home is None:
                raise Untraceable("a CUDA graph that was captured in an earlier call reads its input as another dtype")
            if self._looks[home][1:] == look[1:]:
                return home
            args: tuple[Value, ...] = (TensorRef(home), *(list(s) if isinstance(s, tuple) else s for s in shape))
            with torch._C.DisableTorchFunction(), _disable_current_modes():
                found = self.bind(torch.as_strided(self.tensor(home), *shape))  # type: ignore[arg-type]
            self._append(Op("aten.as_strided.default", args, {}, (found,)))
            return found
        now = self._ids.get(id(self.tensor(number)))
        return number if now is None or self._looks[now] != look else now

    def forget(self, since: int) -> set[int]:
        """Take back the ids from `since` on, of tensors that nothing has computed. Returns the memory that was made there."""
        self.captured = True
        made = {look[0] for look in self._looks[since:]} - {look[0] for look in self._looks[:since]}
        for tensor, _ in self._alive[since:]:
            self._ids.pop(id(tensor), None)
        self.renew(made)
        return made

    def renew(self, storages: set[int]) -> None:
        """Take back the ids of all tensors in some memory, which is about to be written anew."""
        for number, look in enumerate(self._looks):
            if look[0] in storages:
                self._ids.pop(id(self.tensor(number)), None)
                self._homes.pop(look[:2], None)

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
            if self.addresses.asked and real.dtype is torch.int64 and any(map(self.addresses.gave, real.reshape(-1).tolist())):
                raise Untraceable(IN_A_TENSOR)
            raw = real.reshape(-1).view(torch.uint8).numpy().tobytes() if real.numel() else b""
            stand_in = torch.empty_like(real, device=META)
        number = self.bind(stand_in)
        self._append(Literal(number, dtype, tuple(real.shape), base64.b64encode(raw).decode()))
        return stand_in

    def _table(self, stand_in: torch.Tensor, dtype: str) -> torch.Tensor:
        """A reference's tensor without its values: with zeros, which are valid places, too."""
        kind, number = TorchName("dtype", dtype), self.bind(stand_in)
        self._append(Op("aten.zeros.default", (list(stand_in.shape),), {"dtype": kind, "device": DeviceRef()}, (number,)))
        return stand_in

    def _encoded(self, value: Any, asked: Asked) -> Value:
        """An argument of an operator as a Program value, of which `asked` is told. Torch's functions are not watched."""
        kind = type(value)
        if kind is int or kind is float:
            if value >= FIRST and kind is int and self.addresses.gave(value):
                raise Untraceable(IN_A_TENSOR)
            asked.value(value)
            return self.numbers.known(value)
        if isinstance(value, torch.Tensor):
            if value.device.type != "meta":
                value, asked.told = self.literal(value), False
            look = look_unwatched(value)
            asked.tensor(value, look)
            return self._refs[self._id(value, look)]
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
                raise Untraceable("a size depends on a parameter's value; make it a number of __init__") from None
            raise
        with torch._C.DisableTorchFunction():
            if is_laid_out(name):
                result = as_on_cuda(name, [v for v in [*args, *kwargs.values()] if isinstance(v, torch.Tensor)], result)
            items = result if isinstance(result, (tuple, list)) else (result,)
            outs = tuple([self._result(item) if isinstance(item, torch.Tensor) else None for item in items])
        self._append(Op(name, encoded_args, encoded_kwargs, outs, switches_of(name) if self.keeps_switches else ()))
        return result

    def _result(self, tensor: torch.Tensor) -> int:
        """The id of what an operator returned: a new one, unless it returned its argument, changed in place (`t_`)."""
        known = self._ids.get(id(tensor))
        if known is None:
            return self._bind(tensor, look_unwatched(tensor))
        self._looks[known] = look_unwatched(tensor)
        return known

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
            raise Untraceable(f"{name} cannot be traced: its result depends on values") from error
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
    recorder.reading.inputs.add(recorder.storage(recorder.bind(tensor)))
    return tensor


__all__ = ["CUDA", "META", "Recorder", "Untraceable", "fresh_settings", "look_of", "stand_in"]
