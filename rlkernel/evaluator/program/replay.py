"""Executes a Program's steps on real (or meta) tensors. The same code for every device; launches are handed to a callback.

Only the operators that `operators` allows run. Fresh memory is filled with random bytes, so that nothing reads what it did not
write.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from rlkernel.evaluator.program.backends import function_of
from rlkernel.evaluator.program.folding import Folding
from rlkernel.evaluator.program.layouts import Strides, as_on_cuda, laid_out, strides_of
from rlkernel.evaluator.program.lifetimes import LastUses, last_uses
from rlkernel.evaluator.program.operators import allocates, places_of
from rlkernel.evaluator.program.scalars import BadNumber, compute
from rlkernel.evaluator.program.schema import Config, Launch, Literal, Op, Program, Scalar, Step
from rlkernel.evaluator.program.switches import under
from rlkernel.evaluator.program.tensors import copy_of
from rlkernel.evaluator.program.values import (
    Descriptor,
    DeviceRef,
    MalformedProgram,
    Pairs,
    ScalarRef,
    TensorRef,
    TorchName,
    Value,
)
from rlkernel.seeds import seed_generators

LaunchCall = Callable[[Launch, Config, dict[str, Any]], None]
"""(launch, chosen config, parameter -> tensor, descriptor or scalar)"""
Observer = Callable[[int, Step, Sequence[torch.Tensor], Sequence[torch.Tensor]], None]
"""(index in forward, step, tensors read, tensors returned or passed to a launch)"""
Place = Callable[[torch.Tensor], torch.Tensor]
"""Moves a tensor with memory of its own elsewhere, e.g. between red zones; returns the tensor there."""


def tensors_in(args: Mapping[str, Any]) -> list[torch.Tensor]:
    """The tensors among a launch's arguments, those under descriptors included."""
    values = [value.base if isinstance(value, Descriptor) else value for value in args.values()]
    return [value for value in values if isinstance(value, torch.Tensor)]


class StepFailed(Exception):
    """An operator refused its arguments while replaying: the candidate's failure."""


def literal_tensor(step: Literal, device: torch.device) -> torch.Tensor:
    dtype = getattr(torch, step.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise MalformedProgram(f"unknown dtype {step.dtype}")
    raw = bytearray(base64.b64decode(step.data))
    flat = torch.frombuffer(raw, dtype=dtype) if raw else torch.empty(0, dtype=dtype)
    return flat.reshape(step.shape).clone().to(device)


def poison(tensor: torch.Tensor, generator: torch.Generator) -> None:
    """Overwrite the whole storage of `tensor` with random bytes, without touching the default generator."""
    storage = tensor.untyped_storage()
    if storage.nbytes():
        torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(storage).random_(0, 256, generator=generator)


class Replay:
    """One execution of a Program on `device`: `init` once, then `forward` any number of times."""

    def __init__(
        self,
        program: Program,
        device: torch.device,
        launch: LaunchCall,
        *,
        configs: dict[int, int] | None = None,
        poison_seed: int = 0,
        uses: LastUses | None = None,
    ) -> None:
        """uses: what `last_uses` gives of the Program, if it is known."""
        self.program = program
        self.device = device
        self.launch = launch
        self.configs = configs or {}
        """Index of a forward step -> which of its launch's configs to use; the first by default. -1 - i: of step i of
        `Program.once`."""
        self.values: dict[int, torch.Tensor] = {}
        self.given: dict[str, torch.Tensor] = {}
        """Weights that were given to `init` and that its state has not taken by their numbers."""
        self.scalars: dict[int, float | int | bool] = {}
        """The numbers that host code reads from weights. On tensors without data they are made up."""
        self.before_reading: Callable[[], None] = lambda: None
        """Called before a number is read, e.g. to wait for a GPU."""
        self.before_step: Callable[[Step], None] | None = None
        """Called before each step, e.g. to bound how many are on their way to a GPU."""
        self.place: Place | None = None
        """Where results of operators and literals go; None: where the operator put them."""
        self.strides: dict[int, Strides] = {}
        """Identity of an operator's step -> where the trace says that its results lie; empty: where the operator puts them."""
        self.noting = False
        """Whether `strides` are noted rather than used: on tensors without data."""
        self._last_uses = last_uses(program) if uses is None else uses
        self._poison: torch.Generator | None = None
        """What fresh memory is filled from, made with the first."""
        self._poison_seed = poison_seed

    def init(
        self, init_inputs: Sequence[torch.Tensor], seed: int, given: Mapping[str, torch.Tensor] | None = None
    ) -> dict[str, torch.Tensor]:
        """Construct: returns parameters and buffers by name. `given`: values of the state, for what `__init__` makes of it; the
        caller copies those that are left of them, `self.given`, into what is returned."""
        self._bind(self.program.init_inputs, init_inputs)
        seed_generators(seed)
        folding = Folding(self.program.state, given or {}, self.values, self._value, lambda: self.before_reading())
        for index, step in enumerate(self.program.init):
            folding.before(step)
            self._step(-1 - index, step, None)
            folding.after(step)
        state = {name: self._value(TensorRef(number)) for name, number in self.program.state.items()}
        self.given = folding.left(state)
        return state

    def prepare(self, inputs: Sequence[torch.Tensor], seed: int) -> None:
        """Once the weights are there: read the numbers that the host knows, and run what only the first call does.

        inputs: of that call, which are copied; they may be missing where `Program.prepare_inputs` is empty.
        """
        copied: Place = self.place or copy_of
        for ids in self.program.prepare_inputs:
            self._bind(ids, [copied(tensor) for tensor in inputs])
        seed_generators(seed)
        for index, step in enumerate(self.program.prepare, len(self.program.init)):
            self._step(-1 - index, step, None)

    def state(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by name, as the last call has left them."""
        numbers = {**self.program.state, **self.program.state_in_forward}
        return {name: self._value(TensorRef(number)) for name, number in numbers.items()}

    def forward(
        self, inputs: Sequence[torch.Tensor], seed: int, *, skip: frozenset[int] = frozenset(), observe: Observer | None = None,
        fresh: Mapping[int, torch.Tensor] | None = None,
    ) -> Any:  # fmt: skip
        """Returns the output's structure with tensors in it. Launches of the functions in `skip` do nothing.

        `fresh`: memory to use at the steps that allocate, made and poisoned by the caller; elsewhere it is made here.
        """
        self._bind(self.program.inputs, inputs)
        seed_generators(seed)
        for index, step in enumerate(self.program.forward):
            if fresh is not None and index in fresh:
                assert isinstance(step, Op)
                number = step.outs[0]
                if number is not None:
                    self.values[number] = fresh[index]
            elif not (isinstance(step, Launch) and step.function in skip):
                self._step(index, step, observe)
            for number in self._last_uses[index]:
                self.values.pop(number, None)
        output = self._value(self.program.output)
        left = {own: self._value(TensorRef(made)) for own, made in self.program.carried.items()}
        self.values.update(left)
        return output

    def _bind(self, ids: Sequence[int], tensors: Sequence[torch.Tensor]) -> None:
        if len(ids) != len(tensors):
            raise MalformedProgram(f"the Program takes {len(ids)} tensors, {len(tensors)} are given")
        self.values.update(zip(ids, tensors, strict=True))

    def _value(self, value: Value) -> Any:
        """A value with its tensors."""
        if value is None or isinstance(value, (bool, int, float, complex, str)):
            return value
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        if isinstance(value, TensorRef):
            tensor = self.values.get(value.number)
            if tensor is None:
                raise MalformedProgram(f"tensor {value.number} is used before it is made")
            return tensor
        if isinstance(value, ScalarRef):
            if value.number not in self.scalars:
                raise MalformedProgram(f"number {value.number} is used before it is read")
            return self.scalars[value.number]
        if isinstance(value, Descriptor):
            return replace(value, base=self._value(value.base))
        if isinstance(value, DeviceRef):
            return self.device
        if isinstance(value, TorchName):
            found = getattr(torch, value.name, None)
            if not isinstance(found, getattr(torch, value.kind)):
                raise MalformedProgram(f"unknown {value.kind} {value.name}")
            return found
        if isinstance(value, Pairs):
            return {key: self._value(item) for key, item in value.items}
        raise MalformedProgram(f"a {type(value).__name__} where a tensor or a number belongs")

    def _step(self, index: int, step: Step, observe: Observer | None) -> None:
        if self.before_step is not None:
            self.before_step(step)
        if isinstance(step, Literal):
            literal = literal_tensor(step, self.device)
            self.values[step.out] = literal if self.place is None else self.place(literal)
            return
        if isinstance(step, Launch):
            config = step.configs[self.configs.get(index, 0)]
            self.run_hook(config, index, observe)
            args = {name: self._value(value) for name, value in step.args.items()} | config.args
            self.launch(step, config, args)
            if observe is not None:
                tensors = tensors_in(args)
                observe(index, step, tensors, tensors)
            return
        if isinstance(step, Scalar):
            self._scalar(step)
            return
        self._operator(index, step, observe)

    def run_hook(self, config: Config, index: int, observe: Observer | None = None) -> None:
        """What an autotuner's configuration does to tensors before it is launched at step `index`."""
        for step in config.before:
            self._operator(index, step, observe)

    def _scalar(self, step: Scalar) -> None:
        """Read or compute a number of the host. Raises StepFailed."""
        args = [self._value(value) for value in step.args]
        if self.device.type == "meta":
            self.scalars[step.out] = _made_up(step, args)
            return
        if step.operation == "item":
            self.before_reading()
        try:
            self.scalars[step.out] = compute(step.operation, args)
        except BadNumber as error:
            raise StepFailed(str(error)) from error

    def _operator(self, index: int, step: Op, observe: Observer | None) -> None:
        function, places = function_of(step.op, self.device), places_of(step.op)
        args = [self._value(a) for a in step.args]
        # In the schema's order, so that observers find a weight where it belongs.
        given = sorted(step.kwargs.items(), key=lambda item: places.get(item[0], len(places)))
        kwargs = {k: self._value(v) for k, v in given if k != "pin_memory"}
        if "device" in places:
            kwargs["device"] = self.device
        read = [v for v in _flat([*args, *kwargs.values()]) if isinstance(v, torch.Tensor)]
        self._stay_on_device(step.op, read)
        try:
            result = under(step.switches, function, args, kwargs) if step.switches else function(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
            # The same call worked on meta tensors: what fails now is the candidate's use of values, or memory.
            raise StepFailed(f"{step.op}: {(str(error).splitlines() or [type(error).__name__])[0][:200]}") from error
        result = as_on_cuda(step.op, read, result)
        outs = tuple(result) if isinstance(result, (tuple, list)) else (result,)
        if len(outs) != len(step.outs):
            raise MalformedProgram(f"{step.op} returns {len(outs)} values, not {len(step.outs)}")
        if any(isinstance(o, torch.Tensor) and o.device.type != self.device.type for o in outs):
            raise MalformedProgram(f"{step.op} leaves the device")
        if self.noting:
            self.strides[id(step)] = strides_of(outs)
        elif id(step) in self.strides:
            outs = laid_out(outs, self.strides[id(step)], read)
        if self.device.type != "meta" and allocates(step):
            self._poison = self._poison or torch.Generator(self.device).manual_seed(self._poison_seed)
            poison(outs[0], self._poison)
        if self.place is not None:
            outs = self._placed(outs, read)
        for number, out in zip(step.outs, outs, strict=True):
            if number is not None and isinstance(out, torch.Tensor):
                self.values[number] = out
        if observe is not None:
            observe(index, step, read, [o for o in outs if isinstance(o, torch.Tensor)])

    def _stay_on_device(self, op: str, read: Sequence[torch.Tensor]) -> None:
        """Operators on the host's memory trust their arguments: none may slip in beside the device. Raises MalformedProgram."""
        if any(t.device.type != self.device.type for t in read):
            raise MalformedProgram(f"{op} is given a tensor of another device")

    def _placed(self, outs: tuple[Any, ...], read: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """`outs` with new memory moved by `place`; views and arguments stay where they are."""
        assert self.place is not None
        known = {t.untyped_storage()._cdata for t in read}
        return tuple(
            self.place(o) if isinstance(o, torch.Tensor) and o.untyped_storage()._cdata not in known else o for o in outs
        )


def noted_strides(program: Program, init_inputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> dict[int, Strides]:
    """`Replay.strides` of a Program. The arguments are tensors without data."""
    replay = Replay(program, torch.device("meta"), lambda *call: None)
    replay.noting = True
    replay.init(init_inputs, 0)
    replay.prepare(inputs, 0)
    replay.forward(inputs, 0)
    return replay.strides


def _made_up(step: Scalar, args: Sequence[Any]) -> float | int | bool:
    """A number in place of one that nobody knows yet. An int is neither 1 nor a multiple of 16, for which Triton specialises."""
    if step.operation == "item" and isinstance(args[0], torch.Tensor):
        return 0.5 if args[0].is_floating_point() else args[0].dtype == torch.bool or 3
    try:
        value = compute(step.operation, args)
    except BadNumber:
        return 0.5
    return 3 if isinstance(value, int) and not isinstance(value, bool) else value


def _flat(values: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        found.extend(_flat(value) if isinstance(value, (list, tuple)) else [value])
    return found
