"""A tracer's message is validated field by field, and operators by an allow-list."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlkernel.evaluator.program import encoding
from rlkernel.evaluator.program.operators import operator
from rlkernel.evaluator.program.replay import Replay, StepFailed, literal_tensor
from rlkernel.evaluator.program.schema import MAX_STEPS, Config, Function, Launch, Literal, MalformedProgram, Op, Program, Scalar
from rlkernel.evaluator.program.values import DeviceRef, FunctionRef, ModuleRef, ScalarRef, TensorRef, TorchName, decode, encode

CONFIG = Config({}, {"num_warps": 4}, (1, 1, 1))
ZERO = Op("aten.zero_.default", (TensorRef(2),), {}, (2,))
HONEST = Program(
    functions=(Function("k", "def k(x):\n    pass\n", 3, {"tl": ModuleRef("triton.language")}),),
    init_inputs=(),
    init=(Op("aten.randn.default", ([2],), {"device": DeviceRef()}, (0,)),),
    state={"weight": 0},
    inputs=(1,),
    forward=(
        Literal(2, "float32", (2,), "AACAPwAAAEA="),
        Launch(0, {"x": TensorRef(1)}, (Config({}, {"num_warps": 4}, (1, 1, 1)),), 9),
        Op("aten.add.Tensor", (TensorRef(1), TensorRef(2)), {}, (3,)),
    ),
    output=TensorRef(3),
)


PREPARED = replace(
    HONEST,
    forward=(
        Literal(2, "float32", (2,), "AACAPwAAAEA="),
        Launch(0, {"x": TensorRef(1), "n": 3, "s": ScalarRef(1)}, (CONFIG, replace(CONFIG, args={"n": 4}, before=(ZERO,))), 9),
        Op("aten.add.Tensor", (TensorRef(1), TensorRef(4)), {}, (3,)),
    ),
    prepare=(
        Op("aten.add.Tensor", (TensorRef(5), TensorRef(0)), {}, (4,)),
        Scalar(0, "item", (TensorRef(6),)),
        Scalar(1, "mul", (ScalarRef(0), 2.0)),
    ),
    prepare_inputs=((5,),),
    carried={4: 3},
    state_in_forward={"weight": 4},
)


TWICE = replace(PREPARED, forward=(*PREPARED.forward, *(replace(PREPARED.launches[0], tuned_with=n) for n in (0, 7, 0))))


def test_the_first_of_launches_that_are_tuned_together_chooses() -> None:
    assert TWICE.choosers == {1: 1, 3: 3, 4: 4, 5: 3}


@pytest.mark.parametrize("program", [HONEST, PREPARED, TWICE])
def test_json_round_trip(program: Program) -> None:
    assert encoding.from_json(json.loads(json.dumps(encoding.to_json(program)))) == program


def test_configurations_are_written_once_and_each_launch_has_its_own() -> None:
    data = json.loads(json.dumps(encoding.to_json(TWICE)))
    assert [step["configs"] for step in data["forward"][3:]] == [1, 1, 1]
    launches = encoding.from_json(data).launches
    assert launches == TWICE.launches
    assert len({id(config) for launch in launches for config in launch.configs}) == 8  # a runner tells binaries by these


def test_all_configurations_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encoding.to_json(TWICE)
    monkeypatch.setattr(encoding, "MAX_ALTERNATIVES", 8)
    assert encoding.from_json(data) == TWICE
    monkeypatch.setattr(encoding, "MAX_ALTERNATIVES", 7)
    with pytest.raises(MalformedProgram, match="more than 7 configurations of launches"):
        encoding.from_json(data)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("functions", 0, "name"), "os.system", "bad function name"),
        (("functions", 0, "line"), -1, "bad function line"),
        (("functions", 0, "bindings"), {"f": {"function": 7}}, "binding to an unknown function"),
        (("forward", 1, "launch"), 5, "launch of an unknown kernel"),
        (("forward", 1, "configs", 0, "grid"), [1, 1], "bad grid"),
        (("forward", 1, "configs", 0, "grid"), [-1, 1, 1], "bad grid"),
        (("forward", 1, "configs", 0, "options"), {"ir_override": 1}, "unknown launch option"),
        (("forward", 1, "configs"), [], "bad configs"),
        (("forward", 1, "configs"), 0, "no launch before it"),
        (("forward", 1, "configs"), 1, "no launch before it"),
        (("forward", 1, "configs"), -1, "no launch before it"),
        (("forward", 1, "configs"), True, "no launch before it"),
        (("forward", 2, "outs"), ["x"], "bad outputs"),
        (("forward", 2, "args"), [{"open": "/etc/passwd"}], "unknown value"),
        (("forward", 2, "args"), [{"t": 1, "dtype": "float32"}], "unknown value"),
        (("forward", 2, "args"), [{"t": True}], "bad tensor"),
        (("forward", 2, "args"), [{"float": "1e5"}], "bad float"),
        (("forward", 1, "configs", 0, "constants"), {"f": {"function": 7}}, "unknown function"),
        (("output",), {"dict": [["a"]]}, "bad dict"),
        (("forward", 0, "data"), "A" * (1 << 18), "literal too large"),
        (("inputs",), [1 << 30], "bad list of ids"),
        (("state",), {"w": True}, "bad state"),
        (("init",), [{}] * (MAX_STEPS + 1), "bad init steps"),
        (("init",), None, "bad init steps"),
        (("prepare",), [{}] * (2 * MAX_STEPS + 1), "bad prepare steps"),
        (("prepare", 1, "operation"), "system", "unknown operation on a scalar"),
        (("prepare", 1, "scalar"), -1, "bad scalar"),
        (("forward", 0), {"scalar": 0, "operation": "add", "args": [1, 2]}, "a scalar that is read in forward"),
        (("forward", 1, "configs", 1, "args"), {"n": "8"}, "a configuration's argument is no number"),
        (("forward", 1, "configs", 1, "args"), {"m": 8}, "a configuration's argument that the launch has not"),
        (("forward", 1, "configs", 1, "before"), [{"scalar": 0, "operation": "add", "args": [1, 2]}], "a hook that does more"),
        (("forward", 3, "tuned_with"), -1, "bad number of launches"),
        (("forward", 5, "configs"), [encoding.step_to_json(TWICE.launches[0])["configs"][0]], "have other configurations"),
        (("prepare_inputs",), [[5]] * (encoding.MAX_PREPARING + 1), "bad calls that prepare"),
        (("carried",), [[4]], "bad tensors that are carried"),
        (("state_in_forward",), None, "bad names"),
    ],
)
def test_forged_fields_are_refused(path: tuple[Any, ...], value: Any, message: str) -> None:
    data = copy.deepcopy(encoding.to_json(TWICE))
    target: Any = data
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    with pytest.raises(MalformedProgram, match=message):
        encoding.from_json(data)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["op", "args", "launch", "t", "init"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["functions", "init", "forward", "state", "inputs", "init_inputs", "output"]), junk))
def test_junk_raises_nothing_but_malformed(data: dict[str, Any]) -> None:
    try:
        encoding.from_json(data)
    except MalformedProgram:
        return


@pytest.mark.parametrize(
    "name",
    ["aten.from_file.default", "aten.set_.source_Tensor", "aten._pin_memory.default", "prims.sum.default", "os.system",
     "aten.nope.default", "aten._cudnn_rnn.default", "aten.resize_.default", "aten.add.Nope", "aten._local_scalar_dense.default"],
)  # fmt: skip
def test_operators_that_are_not_allowed(name: str) -> None:
    with pytest.raises(MalformedProgram):
        operator(name)


@pytest.mark.parametrize("name", ["aten.add.Tensor", "aten._softmax.default", "aten.convolution.default", "aten.add_.Tensor"])
def test_operators_that_are_allowed(name: str) -> None:
    assert str(operator(name)) == name


def run(program: Program, x: torch.Tensor, **kwargs: Any) -> Any:
    replay = Replay(program, torch.device("cpu"), lambda launch, config, args: args["x"].mul_(2), **kwargs)
    replay.init([], seed=5)
    return replay.forward([x], seed=6)


def test_replay_by_hand() -> None:
    # the launch doubles x in place, then the literal [1, 2] is added: [3, 4] -> [6, 8] -> [7, 10]
    assert run(HONEST, torch.tensor([3.0, 4.0])).tolist() == [7.0, 10.0]


def test_skipped_launches_do_nothing() -> None:
    replay = Replay(HONEST, torch.device("cpu"), lambda launch, config, args: args["x"].mul_(2))
    replay.init([], seed=5)
    assert replay.forward([torch.tensor([3.0, 4.0])], seed=6, skip=frozenset({0})).tolist() == [4.0, 6.0]


def test_init_is_seeded_like_the_reference() -> None:
    replay = Replay(HONEST, torch.device("cpu"), lambda *a: None)
    state = replay.init([], seed=5)
    torch.manual_seed(5)
    assert torch.equal(state["weight"], torch.randn(2))


def test_fresh_memory_is_random_and_differs_by_seed() -> None:
    step = Op("aten.empty.memory_format", ([64],), {"dtype": TorchName("dtype", "float32"), "device": DeviceRef()}, (2,))
    program = Program((), (), (), {}, (1,), (step,), TensorRef(2))
    x = torch.zeros(1)
    first, again, other = (run(program, x, poison_seed=seed).view(torch.int32) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert int((first == 0).sum()) == 0


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (Op("aten.add.Tensor", (TensorRef(1), TensorRef(99)), {}, (2,)), MalformedProgram),
        (Op("aten.add.Tensor", (TensorRef(1), TorchName("dtype", "Tensor")), {}, (2,)), MalformedProgram),
        (Op("aten.add.Tensor", (TensorRef(1), FunctionRef(0)), {}, (2,)), MalformedProgram),
        (Op("aten.mm.default", (TensorRef(1), TensorRef(1)), {}, (2,)), StepFailed),
        (Op("aten.add.Tensor", (TensorRef(1), TensorRef(1)), {}, (2, 3)), MalformedProgram),
    ],
)
def test_bad_steps(step: Op, error: type[Exception]) -> None:
    with pytest.raises(error):
        run(Program((), (), (), {}, (1,), (step,), TensorRef(2)), torch.zeros(2))


def test_literal_of_an_unknown_dtype() -> None:
    with pytest.raises(MalformedProgram, match="unknown dtype nn"):
        literal_tensor(Literal(0, "nn", (1,), "AAAA"), torch.device("cpu"))


def test_complex_numbers_are_values_and_nothing_that_looks_like_one_is() -> None:
    for number in (1 - 2j, complex("inf"), complex(0.0, -0.0)):
        assert str(decode(json.loads(json.dumps(encode(number))))) == str(number)
    for data in ([1.0], [1, 2], ["1", 2.0], {"float": "inf"}, [1.0, {"t": 0}]):
        with pytest.raises(MalformedProgram, match="bad complex number"):
            decode({"complex": data})
