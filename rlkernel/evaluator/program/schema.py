"""`Program`: what a trace leaves of a candidate. Data only; a forged one can do nothing that an honest one cannot.

A Program holds the steps of `ModelNew.__init__` and of `forward`: ATen operators by name, and Triton launches that refer to
kernels by their own source text. Tensors are numbers; a number is bound once, by an input, a literal or a step. What an argument
can be stands in `values`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from rlkernel.evaluator.program.values import (
    MAX_ID,
    FunctionRef,
    Value,
    block,
    decode,
    encode,
    is_int,
    require,
)
from rlkernel.evaluator.program.values import Descriptor as Descriptor
from rlkernel.evaluator.program.values import MalformedProgram as MalformedProgram

MAX_STEPS = 4096
MAX_KERNELS = 64
MAX_LITERAL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Function:
    """One `@triton.jit` function: its own text, and what its free names mean."""

    name: str
    source: str
    line: int
    """The line of `def` in the candidate's file."""
    bindings: dict[str, Value]
    """Free name -> a ModuleRef, LibraryRef, FunctionRef, TlDtype or Constexpr, or a plain value."""
    do_not_specialize: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Op:
    """One ATen call, e.g. `aten.add.Tensor`."""

    op: str
    args: tuple[Value, ...]
    kwargs: dict[str, Value]
    outs: tuple[int | None, ...]
    """Ids bound to the tensors that the call returns, flattened; None for returned non-tensors."""


@dataclass(frozen=True, slots=True)
class Config:
    """One way to compile and launch a kernel: an autotuner's configuration, or the only one."""

    constants: dict[str, Value]
    options: dict[str, int]
    """num_warps, num_stages, num_ctas, maxnreg."""
    grid: tuple[int, int, int]
    blocks: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Descriptor argument -> its block shape in this configuration, where an autotuner's hook has set it."""


def block_shape(name: str, descriptor: Descriptor, config: Config) -> tuple[int, ...]:
    """The block shape of the descriptor argument `name` in one configuration."""
    return config.blocks.get(name, descriptor.block_shape)


@dataclass(frozen=True, slots=True)
class Launch:
    """One Triton launch. Several configs: the kernel is autotuned, the runner chooses."""

    function: int
    args: dict[str, Value]
    """Parameter -> value, constants excluded."""
    configs: tuple[Config, ...]
    line: int
    """The line of the launch in the candidate's file."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A tensor recorded by value, e.g. `torch.tensor([1, 2])`."""

    out: int
    dtype: str
    shape: tuple[int, ...]
    data: str
    """Little-endian bytes, base64."""


Step = Op | Launch | Literal


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

    @property
    def launches(self) -> tuple[Launch, ...]:
        return tuple(step for step in self.forward if isinstance(step, Launch))


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
        return tuple(s for _, item in value.get("dict", []) for s in specs_of(item))
    return tuple(s for item in value for s in specs_of(item)) if isinstance(value, list) else ()


def encode_scalar(value: object) -> Any:
    """A plain Python scalar of a specification, as JSON; raises TypeError for anything else."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    raise TypeError(f"{type(value).__name__} is not a plain scalar")


def decode_scalar(value: Any) -> Any:
    """A plain scalar of a specification, from JSON."""
    return float(value["float"]) if isinstance(value, dict) and "float" in value else value


def _encode_names(values: dict[str, Value]) -> dict[str, Any]:
    return {name: encode(value) for name, value in values.items()}


def step_to_json(step: Step) -> dict[str, Any]:
    if isinstance(step, Op):
        return {"op": step.op, "args": encode(step.args), "kwargs": _encode_names(step.kwargs), "outs": list(step.outs)}
    if isinstance(step, Literal):
        return {"literal": step.out, "dtype": step.dtype, "shape": list(step.shape), "data": step.data}
    return {
        "launch": step.function,
        "args": _encode_names(step.args),
        "line": step.line,
        "configs": [
            {
                "constants": _encode_names(c.constants),
                "options": c.options,
                "grid": list(c.grid),
                "blocks": {k: list(b) for k, b in c.blocks.items()},
            }
            for c in step.configs
        ],
    }


def to_json(program: Program) -> dict[str, Any]:
    return {
        "functions": [
            {
                "name": f.name,
                "source": f.source,
                "line": f.line,
                "bindings": _encode_names(f.bindings),
                "do_not_specialize": list(f.do_not_specialize),
            }
            for f in program.functions
        ],
        "init_inputs": list(program.init_inputs),
        "init": [step_to_json(step) for step in program.init],
        "state": program.state,
        "inputs": list(program.inputs),
        "forward": [step_to_json(step) for step in program.forward],
        "output": encode(program.output),
    }


def _ids(values: object) -> tuple[int, ...]:
    require(isinstance(values, list) and all(is_int(v, 0, MAX_ID) for v in values), "bad list of ids")
    return tuple(values)  # type: ignore[arg-type]


def _names(values: object) -> dict[str, Any]:
    require(isinstance(values, dict) and all(isinstance(k, str) and len(k) < 200 for k in values), "bad names")
    return values  # type: ignore[return-value]


def _values(values: object) -> dict[str, Value]:
    return {name: decode(value) for name, value in _names(values).items()}


def _function(data: Any, count: int) -> Function:
    require(isinstance(data, dict), "a function is not an object")
    name, source, line = data.get("name"), data.get("source"), data.get("line")
    require(isinstance(name, str) and name.isidentifier() and len(name) < 200, "bad function name")
    require(isinstance(source, str) and len(source) < 200_000, "bad function source")
    require(is_int(line, 0, 10**7), "bad function line")
    bindings = _values(data.get("bindings"))
    require(all(name.isidentifier() and not name.startswith("__") for name in bindings), "bad binding name")
    for value in bindings.values():
        require(not isinstance(value, FunctionRef) or value.index < count, "binding to an unknown function")
    skip = data.get("do_not_specialize", [])
    require(isinstance(skip, list) and all(isinstance(s, str) for s in skip), "bad do_not_specialize")
    return Function(name, source, line, bindings, tuple(skip))


def _config(data: Any, functions: int) -> Config:
    require(isinstance(data, dict), "a config is not an object")
    grid = data.get("grid")
    require(isinstance(grid, list) and len(grid) == 3 and all(is_int(g, 0, 2**31 - 1) for g in grid), "bad grid")
    options = _names(data.get("options"))
    require(set(options) <= {"num_warps", "num_stages", "num_ctas", "maxnreg"}, "unknown launch option")
    require(all(is_int(v, 0, 1024) for v in options.values()), "bad launch option")
    blocks = {name: block(shape) for name, shape in _names(data.get("blocks", {})).items()}
    constants = _values(data.get("constants"))
    for value in constants.values():
        require(not isinstance(value, FunctionRef) or value.index < functions, "a constant that is an unknown function")
    return Config(constants, options, (grid[0], grid[1], grid[2]), blocks)


def _step(data: Any, functions: int) -> Step:
    require(isinstance(data, dict), "a step is not an object")
    if "op" in data:
        outs = data.get("outs")
        require(isinstance(data["op"], str) and isinstance(data.get("args"), list), "bad operator step")
        require(isinstance(outs, list) and all(o is None or is_int(o, 0, MAX_ID) for o in outs), "bad outputs")
        return Op(data["op"], tuple(decode(data["args"])), _values(data.get("kwargs")), tuple(outs))
    if "literal" in data:
        shape, raw = data.get("shape"), data.get("data")
        require(is_int(data["literal"], 0, MAX_ID) and isinstance(data.get("dtype"), str), "bad literal")
        require(isinstance(shape, list) and all(is_int(s, 0, 1 << 20) for s in shape), "bad literal shape")
        require(isinstance(raw, str) and len(raw) <= 2 * MAX_LITERAL_BYTES, "literal too large")
        return Literal(data["literal"], data["dtype"], tuple(shape), raw)
    require(is_int(data.get("launch"), 0, functions - 1), "launch of an unknown kernel")
    configs = data.get("configs")
    require(isinstance(configs, list) and 1 <= len(configs) <= 256, "bad configs")
    require(is_int(data.get("line"), 0, 10**7), "bad launch line")
    args, alternatives = _values(data.get("args")), tuple(_config(c, functions) for c in configs)
    for config in alternatives:
        for name, shape in config.blocks.items():
            own = args.get(name)
            require(isinstance(own, Descriptor), "a block shape of what is no descriptor")
            require(len(shape) == len(own.shape), "a block of another rank than its descriptor")  # type: ignore[union-attr]
    return Launch(data["launch"], args, alternatives, data["line"])


def from_json(data: Any) -> Program:
    """Validate a tracer child's message. Raises MalformedProgram; never trusts a count, a type or a size."""
    require(isinstance(data, dict), "not an object")
    raw = data.get("functions")
    require(isinstance(raw, list) and len(raw) <= MAX_KERNELS, "bad list of functions")
    functions = tuple(_function(f, len(raw)) for f in raw)
    steps: list[tuple[Step, ...]] = []
    for key in ("init", "forward"):
        items = data.get(key)
        require(isinstance(items, list) and len(items) <= MAX_STEPS, f"bad {key} steps, at most {MAX_STEPS} are recorded")
        steps.append(tuple(_step(item, len(functions)) for item in items))
    state = _names(data.get("state"))
    require(all(is_int(v, 0, MAX_ID) for v in state.values()), "bad state")
    return Program(
        functions,
        _ids(data.get("init_inputs")),
        steps[0],
        state,
        _ids(data.get("inputs")),
        steps[1],
        decode(data.get("output")),
    )
