"""`Program`: what a trace leaves of a candidate. Data only; a forged one can do nothing that an honest one cannot.

A Program holds the steps of `ModelNew.__init__` and of `forward`: ATen operators by name, and Triton launches that refer to
kernels by their own source text. Tensors are integer ids; an id is bound once, by an input, a literal or a step.

Encoded values (`Value`), as they stand in JSON:
    None, bool, int, str, float               themselves
    {"t": 7}                                  tensor 7
    {"float": "inf" | "-inf" | "nan"}         floats that JSON lacks
    {"dtype": "float32"} {"layout": "strided"} {"memory_format": "channels_last"} {"device": true}
    [..]                                      a list or tuple
    {"descriptor": {"base": {"t": 7}, "shape": [..], "strides": [..], "block_shape": [..], "padding": "zero"}}
                                              a `TensorDescriptor` of the host, only in arguments of launches
    {"tl_dtype": "fp32"} {"function": 2} {"constexpr": ..} {"module": ..} {"triton": ..}    only in bindings and constants
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

Value = Any
"""An encoded value, see above."""

MAX_STEPS = 4096
MAX_KERNELS = 64
MAX_LITERAL_BYTES = 1 << 16


class MalformedProgram(Exception):
    """The tracer child's message is not a Program. The candidate's fault: its process wrote it."""


@dataclass(frozen=True, slots=True)
class Function:
    """One `@triton.jit` function: its own text, and what its free names mean."""

    name: str
    source: str
    line: int
    """Of `def` in the candidate's file."""
    bindings: dict[str, Value]
    """Free name -> {"module": "triton.language"} | {"triton": ["triton.language",
    "load"]} | {"function": i} | {"tl_dtype": ..} | literal."""
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


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A host-side tensor descriptor as a launch's argument: a window on `base`, in elements from its first one."""

    base: Any
    """The tensor."""
    shape: tuple[int, ...]
    """Elements outside are read as zero (or NaN) and are not written."""
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    """What one load or store moves; `Config.blocks` overrides it."""
    padding: str = "zero"

    @property
    def extent(self) -> int:
        """Elements from the base's first one to the last one that the descriptor can reach."""
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))


def block_shape(name: str, descriptor: Descriptor, config: Config) -> tuple[int, ...]:
    """Of the descriptor argument `name` in one configuration."""
    return config.blocks.get(name, descriptor.block_shape)


@dataclass(frozen=True, slots=True)
class Launch:
    """One Triton launch. Several configs: the kernel is autotuned, the runner chooses."""

    function: int
    args: dict[str, Value]
    """Parameter -> value, constants excluded."""
    configs: tuple[Config, ...]
    line: int
    """Of the launch in the candidate's file."""


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
    """Ids in the structure that `forward` returned: {"t": id}, a list, or {"dict": [[key, value], ...]}."""

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


def encode_scalar(value: object) -> Value:
    """A plain Python scalar; raises TypeError for anything else."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    raise TypeError(f"{type(value).__name__} is not a plain scalar")


def decode_scalar(value: Value) -> Any:
    return float(value["float"]) if isinstance(value, dict) and "float" in value else value


def step_to_json(step: Step) -> dict[str, Any]:
    if isinstance(step, Op):
        return {"op": step.op, "args": list(step.args), "kwargs": step.kwargs, "outs": list(step.outs)}
    if isinstance(step, Literal):
        return {"literal": step.out, "dtype": step.dtype, "shape": list(step.shape), "data": step.data}
    return {
        "launch": step.function,
        "args": step.args,
        "line": step.line,
        "configs": [
            {
                "constants": c.constants,
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
                "bindings": f.bindings,
                "do_not_specialize": list(f.do_not_specialize),
            }
            for f in program.functions
        ],
        "init_inputs": list(program.init_inputs),
        "init": [step_to_json(step) for step in program.init],
        "state": program.state,
        "inputs": list(program.inputs),
        "forward": [step_to_json(step) for step in program.forward],
        "output": program.output,
    }


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise MalformedProgram(message)


def _is_int(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _ids(values: object) -> tuple[int, ...]:
    _require(isinstance(values, list) and all(_is_int(v, 0, 1 << 24) for v in values), "bad list of ids")
    return tuple(values)  # type: ignore[arg-type]


def _names(values: object) -> dict[str, Any]:
    _require(isinstance(values, dict) and all(isinstance(k, str) and len(k) < 200 for k in values), "bad names")
    return values  # type: ignore[return-value]


def _function(data: Any, count: int) -> Function:
    _require(isinstance(data, dict), "a function is not an object")
    name, source, line = data.get("name"), data.get("source"), data.get("line")
    _require(isinstance(name, str) and name.isidentifier() and len(name) < 200, "bad function name")
    _require(isinstance(source, str) and len(source) < 200_000, "bad function source")
    _require(_is_int(line, 0, 10**7), "bad function line")
    bindings = _names(data.get("bindings"))
    _require(all(name.isidentifier() and not name.startswith("__") for name in bindings), "bad binding name")
    for value in bindings.values():
        if isinstance(value, dict) and "function" in value:
            _require(_is_int(value["function"], 0, count - 1), "binding to an unknown function")
    skip = data.get("do_not_specialize", [])
    _require(isinstance(skip, list) and all(isinstance(s, str) for s in skip), "bad do_not_specialize")
    return Function(name, source, line, bindings, tuple(skip))


def _config(data: Any) -> Config:
    _require(isinstance(data, dict), "a config is not an object")
    grid = data.get("grid")
    _require(isinstance(grid, list) and len(grid) == 3 and all(_is_int(g, 0, 2**31 - 1) for g in grid), "bad grid")
    options = _names(data.get("options"))
    _require(set(options) <= {"num_warps", "num_stages", "num_ctas", "maxnreg"}, "unknown launch option")
    _require(all(_is_int(v, 0, 1024) for v in options.values()), "bad launch option")
    blocks = {name: _block(block) for name, block in _names(data.get("blocks", {})).items()}
    return Config(_names(data.get("constants")), options, (grid[0], grid[1], grid[2]), blocks)


def _block(value: Any) -> tuple[int, ...]:
    """A block shape: up to 5 powers of two, of at most 2**20 elements (Triton's limit)."""
    _require(isinstance(value, list) and 1 <= len(value) <= 5, "bad block shape")
    _require(all(_is_int(b, 1, 1 << 20) and b & (b - 1) == 0 for b in value), "bad block shape")
    _require(math.prod(value) <= 1 << 20, "block too large")
    return tuple(value)


def descriptor(data: Any, base: Any) -> Descriptor:
    """The encoded descriptor `data` on the tensor `base`. Raises MalformedProgram."""
    _require(isinstance(data, dict), "bad descriptor")
    block, shape, strides = _block(data.get("block_shape")), data.get("shape"), data.get("strides")
    for sizes, low in ((shape, 1), (strides, 0)):
        _require(isinstance(sizes, list) and len(sizes) == len(block), "bad descriptor")
        _require(all(_is_int(n, low, 1 << 40) for n in sizes), "bad descriptor")
    _require(strides[-1] == 1 and all(size < 1 << 31 for size in shape), "bad descriptor")
    _require(data.get("padding") in ("zero", "nan"), "bad descriptor padding")
    return Descriptor(base, tuple(shape), tuple(strides), block, data["padding"])


def _arguments(values: Any) -> dict[str, Value]:
    for value in _names(values).values():
        if isinstance(value, dict) and "descriptor" in value:
            descriptor(value["descriptor"], None)
    return values  # type: ignore[no-any-return]


def _step(data: Any, functions: int) -> Step:
    _require(isinstance(data, dict), "a step is not an object")
    if "op" in data:
        outs = data.get("outs")
        _require(isinstance(data["op"], str) and isinstance(data.get("args"), list), "bad operator step")
        _require(isinstance(outs, list) and all(o is None or _is_int(o, 0, 1 << 24) for o in outs), "bad outputs")
        return Op(data["op"], tuple(data["args"]), _names(data.get("kwargs")), tuple(outs))
    if "literal" in data:
        shape, raw = data.get("shape"), data.get("data")
        _require(_is_int(data["literal"], 0, 1 << 24) and isinstance(data.get("dtype"), str), "bad literal")
        _require(isinstance(shape, list) and all(_is_int(s, 0, 1 << 20) for s in shape), "bad literal shape")
        _require(isinstance(raw, str) and len(raw) <= 2 * MAX_LITERAL_BYTES, "literal too large")
        return Literal(data["literal"], data["dtype"], tuple(shape), raw)
    _require(_is_int(data.get("launch"), 0, functions - 1), "launch of an unknown kernel")
    configs = data.get("configs")
    _require(isinstance(configs, list) and 1 <= len(configs) <= 256, "bad configs")
    _require(_is_int(data.get("line"), 0, 10**7), "bad launch line")
    args, alternatives = _arguments(data.get("args")), tuple(_config(c) for c in configs)
    for config in alternatives:
        for name, block in config.blocks.items():
            own = args.get(name)
            _require(isinstance(own, dict) and "descriptor" in own, "a block shape of what is no descriptor")
            _require(len(block) == len(own["descriptor"]["shape"]), "a block of another rank than its descriptor")  # type: ignore[index]
    return Launch(data["launch"], args, alternatives, data["line"])


def from_json(data: Any) -> Program:
    """Validate a tracer child's message. Raises MalformedProgram; never trusts a count, a type or a size."""
    _require(isinstance(data, dict), "not an object")
    raw = data.get("functions")
    _require(isinstance(raw, list) and len(raw) <= MAX_KERNELS, "bad list of functions")
    functions = tuple(_function(f, len(raw)) for f in raw)
    steps: list[tuple[Step, ...]] = []
    for key in ("init", "forward"):
        items = data.get(key)
        _require(isinstance(items, list) and len(items) <= MAX_STEPS, f"bad {key} steps, at most {MAX_STEPS} are recorded")
        steps.append(tuple(_step(item, len(functions)) for item in items))
    state = _names(data.get("state"))
    _require(all(_is_int(v, 0, 1 << 24) for v in state.values()), "bad state")
    return Program(
        functions, _ids(data.get("init_inputs")), steps[0], state, _ids(data.get("inputs")), steps[1], data.get("output")
    )
