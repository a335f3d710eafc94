"""`Program`: what a trace leaves of a candidate. Data only; a forged one can do nothing that an honest one cannot.

A Program holds the steps of `ModelNew.__init__` and of `forward`: ATen operators by name, and Triton launches that refer to
kernels by their own source text. Between the two stand the steps that prepare: what only the first call of forward does, and the
numbers that host code reads from parameters. Tensors are numbers; a number is bound by an input, a literal or a step. What an
argument can be stands in `values`; `encoding` reads and writes Programs as JSON.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from rlkernel.evaluator.program.values import Descriptor as Descriptor
from rlkernel.evaluator.program.values import MalformedProgram as MalformedProgram
from rlkernel.evaluator.program.values import Value

MAX_STEPS = 131_072
"""Steps of one part of a Program: a bidirectional GRU of six layers and 512 time steps takes 117,000. A trace takes 0.3 ms of an
idle core a step, all calls together, a third of the 120 seconds that it may take where nobody trains on it. A step is 13 values
of a message, so that the Programs of two sizes fit."""
MAX_KERNELS = 64
MAX_CHOICES = 1024
"""Configurations of one launch. Grids of four knobs have some hundred."""
MAX_ALTERNATIVES = 1 << 18
"""Configurations of all launches of one part of a Program together, each as often as it is launched with."""
MAX_LITERAL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Function:
    """One `@triton.jit` or `@triton.constexpr_function`: its own text, and what its free names mean."""

    name: str
    source: str
    line: int
    """The line of `def` in the candidate's file."""
    bindings: dict[str, Value]
    """Free name -> a ModuleRef, LibraryRef, FunctionRef, TlDtype or Constexpr, or a plain value."""
    do_not_specialize: tuple[str, ...] = ()
    constexpr: bool = False
    """Whether it is Python that runs while a kernel is compiled, on constants."""


@dataclass(frozen=True, slots=True)
class Op:
    """One ATen call, e.g. `aten.add.Tensor`."""

    op: str
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    outs: tuple[int | None, ...]
    """Ids bound to the tensors that the call returns, flattened; None for returned non-tensors."""
    switches: tuple[str, ...] = ()
    """What host code has set for this call, see `switches`."""


@dataclass(frozen=True, slots=True)
class Config:
    """One way to compile and launch a kernel: an autotuner's configuration, or the only one."""

    constants: dict[str, Value]
    options: dict[str, int]
    """num_warps, num_stages, num_ctas, maxnreg."""
    grid: tuple[int, int, int]
    blocks: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Descriptor argument -> its block shape in this configuration, where an autotuner's hook has set it."""
    args: dict[str, Value] = field(default_factory=dict)
    """Parameter -> the number that it has in this configuration, where an autotuner's configurations differ in it."""
    before: tuple[Op, ...] = ()
    """What this configuration's hook does to tensors before the launch, where the configurations' hooks differ."""


def block_shape(name: str, descriptor: Descriptor, config: Config) -> tuple[int, ...]:
    """The block shape of the descriptor argument `name` in one configuration."""
    return config.blocks.get(name, descriptor.block_shape)


@dataclass(frozen=True, slots=True)
class Tuning:
    """What an autotuner does to tensors of a launch while it times configurations, by parameters."""

    reset: tuple[str, ...] = ()
    """The parameters that are set to zero before each run of the kernel, and once more before the launch."""
    restored: tuple[str, ...] = ()
    """The parameters that are put back after each run."""


@dataclass(frozen=True, slots=True)
class Launch:
    """One Triton launch. Several configs: the kernel is autotuned, the runner chooses."""

    function: int
    args: dict[str, Value]
    """Parameter -> value, constants excluded."""
    configs: tuple[Config, ...]
    line: int
    """The line of the launch in the candidate's file."""
    tuned_with: int | None = None
    """Launches of forward with the same number take one configuration, which the first of them chooses: they are of one
    autotuner, with equal keys. None: this launch chooses for itself."""
    tuning: Tuning | None = None
    """Where the first call of forward tunes in this launch, on its own tensors; None where it does not, or where hooks of the
    candidate's own prepare them."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A tensor recorded by value, e.g. `torch.tensor([1, 2])`."""

    out: int
    dtype: str
    shape: tuple[int, ...]
    data: str
    """Little-endian bytes, base64."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number of the host that is known when the weights are: read from a tensor of one element, or computed from such.

    It stands in `__init__` or among the steps that prepare, never in forward.
    """

    out: int
    """The number of this scalar; scalars and tensors are numbered apart."""
    operation: str
    """A name of `scalars.OPERATIONS`, e.g. "item" or "mul"."""
    args: tuple[Value, ...]


Step = Op | Launch | Literal | Scalar


@dataclass(frozen=True, slots=True)
class Program:
    functions: tuple[Function, ...]
    init_inputs: tuple[int, ...]
    """Ids of the tensors among `get_init_inputs()`, in order of appearance."""
    init: tuple[Step, ...]
    state: dict[str, int]
    """Parameter and buffer names -> id after `__init__`."""
    inputs: tuple[int, ...]
    """Ids of the tensors among `get_inputs()`, in order of appearance."""
    forward: tuple[Step, ...]
    output: Value
    """What `forward` returned: a TensorRef, or lists and Pairs of them."""
    prepare: tuple[Step, ...] = ()
    """Steps that run once the module has its weights, before the first forward."""
    prepare_inputs: tuple[tuple[int, ...], ...] = ()
    """Ids of the tensors that each call among these steps is given, as `inputs`; empty where no call prepares anything."""
    carried: dict[int, int] = field(default_factory=dict)
    """Tensor that forward is left by the call before -> the tensor that it leaves to the next one in its place."""
    state_in_forward: dict[str, int] = field(default_factory=dict)
    """Parameter and buffer names -> id when forward begins, where it is another than after `__init__`."""

    @property
    def once(self) -> tuple[Step, ...]:
        """The steps that run once per construction: those of `__init__` and those that prepare."""
        return (*self.init, *self.prepare)

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(step for step in self.forward if isinstance(step, Launch))

    @property
    def numbered_launches(self) -> list[tuple[int, Launch]]:
        """The launches by their steps in forward; -1 - i: step i of `once`."""
        steps = [*enumerate(self.forward), *((-1 - index, step) for index, step in enumerate(self.once))]
        return [(number, step) for number, step in steps if isinstance(step, Launch)]

    @property
    def choosers(self) -> dict[int, int]:
        """Step of each launch in forward -> the step of the launch that chooses its configuration, which may be itself."""
        first: dict[int, int] = {}
        launches = ((index, step.tuned_with) for index, step in enumerate(self.forward) if isinstance(step, Launch))
        return {index: index if together is None else first.setdefault(together, index) for index, together in launches}


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor without its values."""

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    """In elements."""
    dtype: str
    """A torch dtype's name without `torch.`, e.g. "float32"."""


def specs_of(value: Any) -> tuple[TensorSpec, ...]:
    """The tensor specifications inside a specification, in order of appearance."""
    if isinstance(value, dict):
        if "tensor" in value:
            spec = value["tensor"]
            return (TensorSpec(tuple(spec["shape"]), tuple(spec["stride"]), spec["dtype"]),)
        if "tuple" in value:
            return specs_of(value["tuple"])
        pairs = value["dict"] if "dict" in value else value.get("values", [])
        return tuple(s for _, item in pairs for s in specs_of(item))
    return tuple(s for item in value for s in specs_of(item)) if isinstance(value, list) else ()


def encode_scalar(value: object) -> Any:
    """A plain value of a specification, as JSON; raises TypeError for anything else."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, complex):
        return {"complex": [encode_scalar(value.real), encode_scalar(value.imag)]}
    if isinstance(value, (np.number, np.bool_)):
        return encode_scalar(value.item())
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return {"torch": str(value).removeprefix("torch.")}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    raise TypeError(f"{type(value).__name__} is not a plain value")


_DECODED: dict[str, Any] = {
    "float": float,
    "complex": lambda parts: complex(*map(decode_scalar, parts)),
    "torch": lambda name: getattr(torch, name),
    "device": torch.device,
    "range": lambda parts: range(*parts),
}


def decode_scalar(value: Any) -> Any:
    """A plain value of a specification, from JSON.

    >>> [decode_scalar(encode_scalar(value)) for value in (2, float("inf"), 1 - 2j, torch.half, torch.device("cuda"), range(3))]
    [2, inf, (1-2j), torch.float16, device(type='cuda'), range(0, 3)]
    """
    if isinstance(value, dict) and len(value) == 1:
        ((kind, data),) = value.items()
        return _DECODED[kind](data)
    return value
