"""What is recorded of Triton launches: arguments, constants, options, grids, configurations and the kernels' text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.program.schema import MAX_CHOICES, Config, Launch, Op, Step, Tuning
from rlkernel.evaluator.program.values import Constexpr, FunctionRef, ModuleRef, TensorRef
from rlkernel.evaluator.trace.intercepting import intercepting
from rlkernel.evaluator.trace.kernels import KernelTable
from rlkernel.evaluator.trace.lie import recording
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable, stand_in

SCALE = tl.constexpr(3)
PLAIN = 7


@triton.jit
def helper(x):
    return tl.exp(x) * SCALE


@triton.jit
def kernel(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, helper(tl.load(x + i, mask=i < n)) * factor, mask=i < n)


@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=8)], key=["n"])
@triton.jit
def tuned(x, n, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), n)


@triton.jit
def other(x):
    tl.store(x, SCALE)


class Traced:
    """Two inputs of 100 floats with the ids 0 and 1, and what is recorded."""

    def __init__(self) -> None:
        self.recorder, self.table = Recorder(), KernelTable()
        self.launches: Any = None
        """What records launches."""
        self.x, self.y = (stand_in(self.recorder, (100,), (1,), torch.float32) for _ in range(2))

    def launch(self) -> Launch:
        """The only step."""
        (step,) = self.steps()
        assert isinstance(step, Launch)
        return step

    def steps(self) -> list[Step]:
        return self.recorder.phase()


@contextmanager
def tracing() -> Iterator[Traced]:
    traced = Traced()
    active = triton.runtime.driver._active
    target = GPUTarget("cuda", H200.arch, 32)
    try:
        opened = intercepting(traced.recorder, traced.table, __file__, target, H200.properties)
        with opened as traced.launches, recording(traced.recorder):
            yield traced
    finally:
        triton.runtime.driver._active = active


def test_a_launch_by_hand() -> None:
    with tracing() as traced:
        kernel[(triton.cdiv(100, 64),)](traced.x, traced.y, 100, math.inf, BLOCK=64, num_warps=2)
    launch = traced.launch()
    assert launch.args == {"x": TensorRef(0), "y": TensorRef(1), "n": 100, "factor": math.inf}
    assert launch.configs == (Config({"BLOCK": 64}, {"num_warps": 2}, (2, 1, 1)),)
    line = test_a_launch_by_hand.__code__.co_firstlineno + 2
    assert (launch.function, launch.line) == (0, line)


def scaled(by: object) -> Any:
    scale = tl.constexpr(by)

    @triton.jit
    def kernel(x):
        tl.store(x, scale)

    return kernel


def test_kernels_of_equal_text_are_one_where_their_constants_are_the_same_and_not_only_equal() -> None:
    values = (1, 1.0, True, 0.0, -0.0, 1, 1.0, -0.0)
    with tracing() as traced:
        for value in values:
            scaled(value)[(1,)](traced.x)
    assert [step.function for step in traced.steps() if isinstance(step, Launch)] == [0, 1, 2, 3, 4, 0, 1, 4]
    found = [function.bindings["scale"] for function in traced.table.functions if function is not None]
    assert [repr(one.value) for one in found if isinstance(one, Constexpr)] == ["1", "1.0", "True", "0.0", "-0.0"]


def default(by: object) -> Any:
    @triton.jit
    def kernel(x, é=1, *, value=by, scale: tl.constexpr = SCALE):
        tl.store(x, value * scale)

    return kernel


def test_a_default_is_what_it_was_when_the_kernel_was_defined() -> None:
    with tracing() as traced:
        for value in (2, -2.5, 2):
            default(value)[(1,)](traced.x)
    assert [step.function for step in traced.steps() if isinstance(step, Launch)] == [0, 1, 0]
    assert [function.source.splitlines()[0] for function in traced.table.functions if function is not None] == [
        f"def kernel(x, é=1, *, value={value}, scale: tl.constexpr = SCALE):" for value in (2, -2.5)
    ]


def test_kernels_are_text_and_what_their_names_mean() -> None:
    with tracing() as traced:
        kernel[(1,)](traced.x, traced.y, 100, 1.0, BLOCK=128)
        kernel[(1,)](traced.y, traced.x, 100, 1.0, BLOCK=128)
    first, second = traced.table.functions
    assert first is not None and second is not None
    assert (first.name, second.name) == ("kernel", "helper")
    assert first.source.startswith("def kernel(x, y, n, factor, BLOCK: tl.constexpr):\n")
    assert first.bindings == {"helper": FunctionRef(1), "tl": ModuleRef("triton.language")}
    assert second.bindings == {"SCALE": Constexpr(3), "tl": ModuleRef("triton.language")}
    assert first.line == kernel.fn.__code__.co_firstlineno + 1
    assert len(traced.steps()) == 2


def test_a_grid_may_be_a_function_of_the_arguments() -> None:
    with tracing() as traced:
        kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]), 3)](traced.x, traced.y, 100, 1.0, BLOCK=16)
    assert traced.launch().configs[0].grid == (7, 3, 1)


def test_every_configuration_of_an_autotuned_kernel_is_an_alternative_of_one_launch() -> None:
    with tracing() as traced:
        tuned[lambda meta: (256 // meta["BLOCK"],)](traced.x, 256)
    launch = traced.launch()
    assert launch.args == {"x": TensorRef(0), "n": 256}
    assert [(c.constants["BLOCK"], c.options["num_warps"], c.grid) for c in launch.configs] == [
        (64, 2, (4, 1, 1)),
        (128, 8, (2, 1, 1)),
    ]


def test_one_autotuner_chooses_once_for_equal_keys() -> None:
    """Its key: values of the key's arguments, and the dtypes of all arguments, as `Autotuner.run` makes it."""
    again = triton.autotune(configs=tuned.configs, key=["n"])(tuned.fn)
    with tracing() as traced:
        half = stand_in(traced.recorder, (100,), (1,), torch.float16)
        for tuner, given, n in (
            (tuned, traced.x, 8),
            (tuned, traced.y, 8),
            (tuned, traced.y, 9),
            (tuned, half, 8),
            (again, half, 8),
        ):
            tuner[(1,)](given, n)
        tuned[(1,)](n=8, x=traced.x)
        triton.autotune(configs=[triton.Config({"BLOCK": 64})], key=["n"])(tuned.fn)[(1,)](traced.x, 8)
    assert [step.tuned_with for step in traced.steps() if isinstance(step, Launch)] == [0, 0, 1, 2, 3, 0, None]


def test_the_first_call_tunes_in_the_first_launch_of_each_key() -> None:
    kept = triton.autotune(configs=tuned.configs, key=["n"], restore_value=["x"])(tuned.fn)
    hooked = triton.autotune(configs=tuned.configs, key=["n"], pre_hook=lambda given, reset_only=False: None)(tuned.fn)
    with tracing() as traced:
        tuned[(1,)](traced.x, 7)  # before any call of forward
        for _ in range(2):
            traced.launches.choices.begin_call()
            for tuner, n in ((tuned, 7), (tuned, 8), (tuned, 8), (kept, 8), (hooked, 8)):
                tuner[(1,)](traced.x, n)
    found = [step.tuning for step in traced.steps() if isinstance(step, Launch)]
    assert found == [None, *[None, Tuning(), None, Tuning(restored=("x",)), None] * 2]


def test_pruning_is_asked_when_an_autotuner_chooses_and_not_again() -> None:
    asked: list[int] = []

    def prune(configs: list[Any], given: dict[str, Any], **kwargs: Any) -> list[Any]:
        asked.append(given["n"])
        return configs[len(asked) % 2 :][:1]

    pruned = triton.autotune(configs=tuned.configs, key=["n"], prune_configs_by={"early_config_prune": prune})(tuned.fn)
    with tracing() as traced:
        for n in (8, 9, 8, 9):
            pruned[(1,)](traced.x, n)
        assert [traced.launches.kept[id(step)] for step in traced.steps()] == [(1,), (0,), (1,), (0,)]
    assert asked == [8, 9]


@triton.jit
def split(x, n, SPLIT, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), SPLIT, mask=tl.arange(0, BLOCK) < n)


def zero(args: dict[str, Any]) -> None:
    args["x"].zero_()


SPLITS = [triton.Config({"SPLIT": 1, "BLOCK": 64}), triton.Config({"SPLIT": 4, "BLOCK": 64}, pre_hook=zero)]
ZEROED = Op("aten.zero_.default", (TensorRef(0),), {}, (0,))


def test_configurations_may_differ_in_numbers_and_in_hooks() -> None:
    with tracing() as traced:
        triton.autotune(configs=SPLITS, key=["n"])(split)[lambda meta: (meta["SPLIT"],)](traced.x, 256)
    launch = traced.launch()
    assert [(c.grid, {**launch.args, **c.args}["SPLIT"], c.before) for c in launch.configs] == [
        ((1, 1, 1), 1, ()),
        ((4, 1, 1), 4, (ZEROED,)),
    ]


def test_what_all_hooks_do_is_done_once_before_the_launch() -> None:
    both = [triton.Config({"SPLIT": n, "BLOCK": 64}, pre_hook=zero) for n in (2, 4)]
    with tracing() as traced:
        triton.autotune(configs=both, key=["n"])(split)[lambda meta: (meta["SPLIT"],)](traced.x, 256)
    hook, launch = traced.steps()
    assert hook == ZEROED
    assert isinstance(launch, Launch)
    assert [config.before for config in launch.configs] == [(), ()]


def test_configurations_may_not_differ_in_tensors() -> None:
    with tracing() as traced:
        other = [triton.Config({"y": traced.y, "BLOCK": 16}), triton.Config({"y": traced.x, "BLOCK": 16})]
        with pytest.raises(Untraceable, match="differ in the kernel or in the tensors"):
            triton.autotune(configs=other, key=["n"])(kernel)[(1,)](traced.x, n=100, factor=1.0)


def test_none_is_a_constant() -> None:
    with tracing() as traced:
        kernel[(1,)](traced.x, traced.y, 100, None, BLOCK=16)
    launch = traced.launch()
    assert launch.args == {"x": TensorRef(0), "y": TensorRef(1), "n": 100}
    assert launch.configs[0].constants == {"factor": None, "BLOCK": 16}


def test_launches_and_operators_are_in_one_order() -> None:
    with tracing() as traced:
        doubled = traced.x * 2
        kernel[(1,)](doubled, traced.y, 100, 1.0, BLOCK=16)
        traced.y.add_(1)
    first, second, third = traced.steps()
    assert isinstance(first, Op) and isinstance(second, Launch) and isinstance(third, Op)
    assert (first.outs, second.args["x"], third.op) == ((2,), TensorRef(2), "aten.add_.Tensor")


@pytest.mark.parametrize(
    ("kwargs", "error", "line"),
    [
        ({"factor": [1]}, TypeError, "failed to specialize argument of type: list"),
        ({"BLOCK": object()}, Untraceable, "constexpr argument BLOCK is a object"),
        ({"blocks": 3}, KeyError, "'Keyword argument blocks was specified but unrecognised'"),
    ],
)
def test_what_no_launch_takes_is_refused(kwargs: dict[str, Any], error: type[Exception], line: str) -> None:
    with tracing() as traced, pytest.raises(error) as refused:
        kernel.run(traced.x, traced.y, 100, grid=(1,), **{"warmup": False, "factor": 1.0, "BLOCK": 16, **kwargs})
    assert str(refused.value) == line
    assert traced.steps() == []


def test_arguments_that_are_missing_or_too_many_are_the_candidates_mistake() -> None:
    with tracing() as traced:
        with pytest.raises(TypeError, match=r"^kernel\(\) missing 2 required positional arguments: 'factor' and 'BLOCK'$"):
            kernel[(1,)](traced.x, traced.y, 100)
        with pytest.raises(TypeError, match=r"^kernel\(\) takes 5 positional arguments but 6 were given$"):
            kernel[(1,)](traced.x, traced.y, 100, 1.0, 16, 17)
        with pytest.raises(TypeError, match=r"^object of type 'int' has no len\(\)$"):
            kernel[7](traced.x, traced.y, 100, 1.0, BLOCK=16)


def test_afterwards_triton_launches_again() -> None:
    run = triton.runtime.jit.JITFunction.run
    with tracing():
        assert triton.runtime.jit.JITFunction.run is not run
    assert triton.runtime.jit.JITFunction.run is run


def test_a_global_constant_that_changes_between_launches_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton compares them with what it has compiled: https://triton-lang.org, `JITFunction.run`."""
    with tracing() as traced:
        kernel[(1,)](traced.x, traced.y, 100, 1.0, BLOCK=16)
        monkeypatch.setitem(helper.fn.__globals__, "SCALE", tl.constexpr(3))
        kernel[(1,)](traced.x, traced.y, 100, 1.0, BLOCK=16)
        other[(1,)](traced.x)
        monkeypatch.setitem(helper.fn.__globals__, "SCALE", tl.constexpr(4))
        with pytest.raises(RuntimeError, match=r"^Global variable SCALE has changed since we compiled this kernel"):
            other[(1,)](traced.x)


@pytest.mark.parametrize("count", [MAX_CHOICES, MAX_CHOICES + 1])
def test_an_autotuner_of_too_many_configurations_is_refused_in_words(count: int) -> None:
    configs = [triton.Config({"BLOCK": 64}, num_warps=2, maxnreg=8 * place) for place in range(1, count + 1)]
    many = triton.autotune(configs=configs, key=["n"])(tuned.fn)
    with tracing() as traced:
        if count > MAX_CHOICES:
            with pytest.raises(Untraceable, match="an autotuner has 1025 configurations, more than 1024; name fewer"):
                many[(1,)](traced.x, 100)
        else:
            many[(1,)](traced.x, 100)
            assert len(traced.launch().configs) == 1024
