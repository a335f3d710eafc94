"""A Program as JSON, and back. What is read is checked: a tracer child that a candidate has taken over may have written it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rlkernel.evaluator.program.scalars import OPERATIONS
from rlkernel.evaluator.program.schema import (
    MAX_ALTERNATIVES,
    MAX_CHOICES,
    MAX_KERNELS,
    MAX_LITERAL_BYTES,
    MAX_STEPS,
    Config,
    Function,
    Launch,
    Literal,
    Op,
    Program,
    Scalar,
    Step,
    Tuning,
)
from rlkernel.evaluator.program.switches import NAMES
from rlkernel.evaluator.program.values import (
    MAX_ID,
    Descriptor,
    FunctionRef,
    Value,
    block,
    decode,
    encode,
    is_int,
    require,
)

MAX_HOOK_STEPS = 64
MAX_PREPARING = 16
"""The most calls of forward that prepare, in both modes."""


def _encode_names(values: dict[str, Value]) -> dict[str, Any]:
    return {name: encode(value) for name, value in values.items()}


def step_to_json(step: Step, same: int | None = None) -> dict[str, Any]:
    """A step as JSON. `same`: the place of an earlier launch with the same configurations, which are not written again."""
    if isinstance(step, Op):
        row = {"op": step.op, "args": encode(step.args), "kwargs": _encode_names(step.kwargs), "outs": list(step.outs)}
        return row | {"switches": list(step.switches)} if step.switches else row
    if isinstance(step, Literal):
        return {"literal": step.out, "dtype": step.dtype, "shape": list(step.shape), "data": step.data}
    if isinstance(step, Scalar):
        return {"scalar": step.out, "operation": step.operation, "args": encode(step.args)}
    tuned: dict[str, Any] = {} if step.tuned_with is None else {"tuned_with": step.tuned_with}
    if step.tuning is not None:
        tuned["tuning"] = {"reset": list(step.tuning.reset), "restored": list(step.tuning.restored)}
    return tuned | {
        "launch": step.function,
        "args": _encode_names(step.args),
        "line": step.line,
        "configs": [_config_to_json(config) for config in step.configs] if same is None else same,
    }


def _config_to_json(config: Config) -> dict[str, Any]:
    return {
        "constants": _encode_names(config.constants),
        "options": config.options,
        "grid": list(config.grid),
        "blocks": {name: list(block) for name, block in config.blocks.items()},
        "args": _encode_names(config.args),
        "before": [step_to_json(op) for op in config.before],
    }


def _part_to_json(steps: Sequence[Step]) -> list[dict[str, Any]]:
    """One part of a Program. A loop over time launches thousands of times with the same configurations: they are written once."""
    rows: list[dict[str, Any]] = []
    first: dict[tuple[int, ...], int] = {}
    for place, step in enumerate(steps):
        same = first.setdefault(tuple(map(id, step.configs)), place) if isinstance(step, Launch) else place
        rows.append(step_to_json(step, same if same < place else None))
    return rows


def to_json(program: Program) -> dict[str, Any]:
    return {
        "functions": [
            {
                "name": f.name,
                "source": f.source,
                "line": f.line,
                "bindings": _encode_names(f.bindings),
                "do_not_specialize": list(f.do_not_specialize),
                "constexpr": f.constexpr,
            }
            for f in program.functions
        ],
        "init_inputs": list(program.init_inputs),
        "init": _part_to_json(program.init),
        "state": program.state,
        "inputs": list(program.inputs),
        "forward": _part_to_json(program.forward),
        "output": encode(program.output),
        "prepare": _part_to_json(program.prepare),
        "prepare_inputs": [list(ids) for ids in program.prepare_inputs],
        "carried": [list(pair) for pair in program.carried.items()],
        "state_in_forward": program.state_in_forward,
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
    constexpr = data.get("constexpr", False)
    require(isinstance(constexpr, bool), "bad kind of function")
    return Function(name, source, line, bindings, tuple(skip), constexpr)


def _config(data: Any, functions: int) -> Config:
    require(isinstance(data, dict), "a config is not an object")
    grid = data.get("grid")
    require(isinstance(grid, list) and len(grid) == 3 and all(is_int(g, 0, 2**31 - 1) for g in grid), "bad grid")
    options = _names(data.get("options"))
    require(set(options) <= {"num_warps", "num_stages", "num_ctas", "maxnreg"}, "unknown launch option")
    require(all(is_int(v, 0, 1024) for v in options.values()), "bad launch option")
    blocks = {name: block(shape) for name, shape in _names(data.get("blocks", {})).items()}
    constants, args = _values(data.get("constants")), _values(data.get("args", {}))
    require(all(isinstance(value, (bool, int, float)) for value in args.values()), "a configuration's argument is no number")
    before = data.get("before", [])
    require(isinstance(before, list) and len(before) <= MAX_HOOK_STEPS, "bad steps of a hook")
    hook = tuple(step for step in (_step(item, functions) for item in before) if isinstance(step, Op))
    require(len(hook) == len(before), "a hook that does more than operators do")
    for value in constants.values():
        require(not isinstance(value, FunctionRef) or value.index < functions, "a constant that is an unknown function")
    return Config(constants, options, (grid[0], grid[1], grid[2]), blocks, args, hook)


def _step(data: Any, functions: int, before: Sequence[Step] = ()) -> Step:
    """One step, other than those in its configurations. `before`: the steps of its part that come before it. Raises
    MalformedProgram."""
    require(isinstance(data, dict), "a step is not an object")
    if "op" in data:
        outs = data.get("outs")
        require(isinstance(data["op"], str) and isinstance(data.get("args"), list), "bad operator step")
        require(isinstance(outs, list) and all(o is None or is_int(o, 0, MAX_ID) for o in outs), "bad outputs")
        switches = data.get("switches", [])
        require(isinstance(switches, list) and all(isinstance(s, str) and s in NAMES for s in switches), "unknown switch")
        return Op(data["op"], tuple(decode(data["args"])), _values(data.get("kwargs")), tuple(outs), tuple(switches))
    if "literal" in data:
        shape, raw = data.get("shape"), data.get("data")
        require(is_int(data["literal"], 0, MAX_ID) and isinstance(data.get("dtype"), str), "bad literal")
        require(isinstance(shape, list) and all(is_int(s, 0, 1 << 20) for s in shape), "bad literal shape")
        require(isinstance(raw, str) and len(raw) <= 2 * MAX_LITERAL_BYTES, "literal too large")
        return Literal(data["literal"], data["dtype"], tuple(shape), raw)
    if "scalar" in data:
        require(is_int(data["scalar"], 0, MAX_ID) and isinstance(data.get("args"), list), "bad scalar")
        require(data.get("operation") in OPERATIONS, "unknown operation on a scalar")
        return Scalar(data["scalar"], data["operation"], tuple(decode(data["args"])))
    require(is_int(data.get("launch"), 0, functions - 1), "launch of an unknown kernel")
    require(is_int(data.get("line"), 0, 10**7), "bad launch line")
    args, alternatives = _values(data.get("args")), _configs(data.get("configs"), functions, before)
    for config in alternatives:
        require(config.args.keys() <= args.keys(), "a configuration's argument that the launch has not")
        for name, shape in config.blocks.items():
            own = args.get(name)
            require(isinstance(own, Descriptor), "a block shape of what is no descriptor")
            require(len(shape) == len(own.shape), "a block of another rank than its descriptor")  # type: ignore[union-attr]
    together = data.get("tuned_with")
    require(together is None or is_int(together, 0, MAX_ID), "bad number of launches that are tuned together")
    return Launch(data["launch"], args, alternatives, data["line"], together, _tuning(data.get("tuning"), args))


def _configs(data: Any, functions: int, before: Sequence[Step]) -> tuple[Config, ...]:
    """The configurations of a launch, or those of the launch at a place before it. Raises MalformedProgram."""
    if isinstance(data, int):
        earlier = before[data] if is_int(data, 0, len(before) - 1) else None
        require(isinstance(earlier, Launch), "configs of what is no launch before it")
        return tuple(replace(config) for config in earlier.configs)  # type: ignore[union-attr]  # each launch has its own binaries
    require(isinstance(data, list) and 1 <= len(data) <= MAX_CHOICES, "bad configs")
    return tuple(_config(config, functions) for config in data)


def _tuning(data: Any, args: Mapping[str, Value]) -> Tuning | None:
    if data is None:
        return None
    require(isinstance(data, dict) and data.keys() == {"reset", "restored"}, "bad tuning")
    for names in data.values():
        require(isinstance(names, list) and all(isinstance(n, str) and n in args for n in names), "tuning of no argument")
        require(len(set(names)) == len(names), "tuning that names an argument twice")
    return Tuning(tuple(data["reset"]), tuple(data["restored"]))


def from_json(data: Any) -> Program:
    """Validate a tracer child's message. Raises MalformedProgram; never trusts a count, a type or a size."""
    require(isinstance(data, dict), "not an object")
    raw = data.get("functions")
    require(isinstance(raw, list) and len(raw) <= MAX_KERNELS, "bad list of functions")
    functions = tuple(_function(f, len(raw)) for f in raw)
    given = {"prepare": [], "prepare_inputs": [], "carried": [], "state_in_forward": {}, **data}
    steps = {key: _steps(given.get(key), len(functions), key) for key in ("init", "forward", "prepare")}
    require(not any(isinstance(step, Scalar) for step in steps["forward"]), "a scalar that is read in forward")
    launched = {step.function for part in steps.values() for step in part if isinstance(step, Launch)}
    require(not any(functions[index].constexpr for index in launched), "launch of a function that is no kernel")
    calls, carried = given["prepare_inputs"], given["carried"]
    require(isinstance(calls, list) and len(calls) <= MAX_PREPARING, "bad calls that prepare")
    require(isinstance(carried, list) and all(len(_ids(pair)) == 2 for pair in carried), "bad tensors that are carried")
    _check_tuned(steps["forward"])
    return Program(
        functions,
        _ids(data.get("init_inputs")),
        steps["init"],
        _state(data.get("state")),
        _ids(data.get("inputs")),
        steps["forward"],
        decode(data.get("output")),
        steps["prepare"],
        tuple(_ids(call) for call in calls),
        {pair[0]: pair[1] for pair in carried},
        _state(given["state_in_forward"]),
    )


def _check_tuned(steps: Sequence[Step]) -> None:
    """Raises MalformedProgram for launches that are tuned together and have not as many configurations."""
    counts: dict[int, int] = {}
    for step in steps:
        if isinstance(step, Launch) and step.tuned_with is not None:
            count = counts.setdefault(step.tuned_with, len(step.configs))
            require(count == len(step.configs), "launches that are tuned together have other configurations")


def _steps(items: Any, functions: int, what: str) -> tuple[Step, ...]:
    most = 2 * MAX_STEPS if what == "prepare" else MAX_STEPS
    require(isinstance(items, list) and len(items) <= most, f"bad {what} steps, at most {most} are recorded")
    steps: list[Step] = []
    for item in items:
        steps.append(_step(item, functions, steps))
    alternatives = sum(len(step.configs) for step in steps if isinstance(step, Launch))
    require(alternatives <= MAX_ALTERNATIVES, f"more than {MAX_ALTERNATIVES} configurations of launches")
    return tuple(steps)


def _state(data: Any) -> dict[str, int]:
    state = _names(data)
    require(all(is_int(v, 0, MAX_ID) for v in state.values()), "bad state")
    return state
