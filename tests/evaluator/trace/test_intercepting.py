"""Whole launches are accepted and refused as by Triton: what Triton's own `run` methods refuse is refused with the same error."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st
from triton.backends.compiler import GPUTarget
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.program.schema import Launch
from rlkernel.evaluator.trace.host_numbers import UnknownValue
from rlkernel.evaluator.trace.intercepting import intercepting
from rlkernel.evaluator.trace.kernels import KernelTable
from rlkernel.evaluator.trace.lie import recording
from rlkernel.evaluator.trace.recorder import Recorder, Untraceable, stand_in

RUNS = JITFunction.run, Autotuner.run
"""Triton's own, before anything stands in their place."""


def once(call: Callable[[], None], quantiles: Any) -> list[float]:
    """A benchmark that runs each configuration once."""
    call()
    return [1.0, 1.0, 1.0]


@triton.jit
def plain(x, n, scale=1.0, BLOCK: tl.constexpr = 64, FLAG: tl.constexpr = False):
    tl.store(x + tl.arange(0, BLOCK), n)


def two(**kwargs: Any) -> Any:
    configs = [triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128}, num_warps=8, num_stages=2)]
    return triton.autotune(configs, key=["n"], do_bench=once, **kwargs)(plain)


KERNELS: dict[str, Any] = {
    "plain": plain,
    "one config": triton.autotune([triton.Config({"BLOCK": 32})], key=["n"], do_bench=once)(plain),
    "two configs": two(),
    "no configs": triton.autotune([], key=[], do_bench=once)(plain),
    "configs of unknown words": triton.autotune(
        [triton.Config({"BLOCKS": 32}), triton.Config({"BLOCKS": 64})], key=[], do_bench=once
    )(plain),
    "configs of different words": triton.autotune(
        [triton.Config({"BLOCK": 32}), triton.Config({"FLAG": True})], key=[], do_bench=once
    )(plain),
    "reset": two(reset_to_zero=["x"]),
    "reset unknown": two(reset_to_zero=["y"]),
    "restore a number": two(restore_value=["n"]),
    "pruned to one": two(prune_configs_by={"early_config_prune": lambda configs, nargs, **kwargs: configs[:1]}),
    "pruned to none": two(prune_configs_by={"early_config_prune": lambda configs, nargs, **kwargs: []}),
    "heuristics": triton.heuristics({"BLOCK": lambda args: 2 * args["n"] if args["n"] else 64})(plain),
    "heuristics over configs": triton.heuristics({"BLOCK": lambda args: 64})(two()),
    "other heuristics over configs": triton.heuristics({"FLAG": lambda args: args["n"] == 7})(two()),
    "configs over heuristics": triton.autotune([triton.Config({"BLOCK": 32})], key=[], do_bench=once)(
        triton.heuristics({"FLAG": lambda args: args["BLOCK"] == 32})(plain)
    ),
}
VALUES: dict[str, Any] = {
    "int": 7, "zero": 0, "big": 2**40, "huge": 2**70, "float": 0.5, "bool": True, "none": None, "string": "a",
    "list": [1], "tuple": (1, 2), "numpy": np.int64(3), "constexpr": tl.constexpr(4), "complex": 1j,
}  # fmt: skip
NAMES = [
    "x",
    "n",
    "scale",
    "BLOCK",
    "FLAG",
    "BLOCKS",
    "num_warps",
    "num_stages",
    "num_ctas",
    "unknown",
    "grid",
    "warmup",
    "stream",
]
GRIDS: dict[str, Any] = {
    "1": (1,), "none": None, "int": 4, "empty": (), "zero": (0,), "float": (1.5,), "whole float": (2.0,), "3": (2, 3, 4),
    "4": (2, 3, 4, 5), "list": [3], "string": ("1",), "negative": (-1,), "two negatives": (-1, -1), "tall": (1, 65536),
    "as tall as can be": (1, 65535), "deep": (1, 1, 65536), "wide": (2**31 - 1,), "too wide": (2**31,),
    "of meta": lambda meta: (triton.cdiv(100, meta["BLOCK"]),), "of unknown": lambda meta: (meta["SIZE"],),
    "of division": lambda meta: (100 / meta["BLOCK"],), "number": lambda meta: 3, "bool": (True,), "numpy": (np.int64(2),),
}  # fmt: skip


class Launcher:
    """What compilation would give: it takes a grid as Triton's C launcher and the driver do, and notes it."""

    function = packed_metadata = None

    def __init__(self) -> None:
        self.grids: list[tuple[int, ...]] = []

    def launch_metadata(self, *args: Any) -> None:
        return None

    def run(self, *args: Any) -> None:
        sizes = tuple(operator.index(size) for size in args[:3])
        if any(not -(2**31) <= size < 2**31 for size in sizes):
            raise OverflowError("signed integer is greater than maximum")
        product = (sizes[0] * sizes[1] * sizes[2] + 2**31) % 2**32 - 2**31
        if product > 0:
            if min(sizes) < 1 or max(sizes[1:]) > 65535:
                raise RuntimeError("Triton Error [CUDA]: invalid argument")
            self.grids.append(sizes)


def outcome(call: Callable[[], Any]) -> tuple[str, str]:
    try:
        call()
    except Exception as error:
        text = "" if "a launch needs a grid" in str(error) else str(error)  # Triton has no words for it
        return type(error).__name__, text.replace("dynamic_func()", "plain()")
    return "accepted", ""


def in_triton(name: str, args: list[str], kwargs: dict[str, str], grid: Any) -> tuple[tuple[str, str], set[tuple[int, ...]]]:
    """What Triton makes of a launch, up to compilation, and every grid that it launches."""
    launcher, kernel = Launcher(), KERNELS[name]
    for part in (kernel, getattr(kernel, "fn", None)):
        if isinstance(part, Autotuner):
            part.cache.clear()
    x = torch.zeros(4)
    with (
        mock.patch.object(JITFunction, "run", RUNS[0]),
        mock.patch.object(Autotuner, "run", RUNS[1]),
        mock.patch.object(JITFunction, "_do_compile", lambda *args: launcher),
    ):
        plain.device_caches.clear()
        given = [x if arg == "tensor" else VALUES[arg] for arg in args]
        found = outcome(lambda: kernel[grid](*given, **{k: x if v == "tensor" else VALUES[v] for k, v in kwargs.items()}))
    return found, set(launcher.grids)


def traced(name: str, args: list[str], kwargs: dict[str, str], grid: Any) -> tuple[tuple[str, str], set[tuple[int, ...]]]:
    """What the tracer makes of it, and every grid that it records, those of no programs left out."""
    profile, recorder = PROFILES["h200"], Recorder()
    plain.device_caches.clear()
    target = GPUTarget("cuda", profile.arch, 32)
    with intercepting(recorder, KernelTable(), "f", target, profile.properties), recording(recorder):
        x = stand_in(recorder, (4,), (1,), torch.float32)
        given = [x if arg == "tensor" else VALUES[arg] for arg in args]
        named = {key: x if value == "tensor" else VALUES[value] for key, value in kwargs.items()}
        found = outcome(lambda: KERNELS[name][grid](*given, **named))
        launches = [step for step in recorder.phase() if isinstance(step, Launch)]
    grids = {config.grid for launch in launches for config in launch.configs}
    return found, {sizes for sizes in grids if min(sizes) > 0}


@pytest.fixture(autouse=True)
def _driver() -> Iterator[None]:
    before = triton.runtime.driver._active
    profile = PROFILES["h200"]
    with intercepting(Recorder(), KernelTable(), "f", GPUTarget("cuda", profile.arch, 32), profile.properties):
        yield
    triton.runtime.driver._active = before


def check(name: str, args: list[str], kwargs: dict[str, str], grid: str) -> None:
    wanted, launched = in_triton(name, args, kwargs, GRIDS[grid])
    found, recorded = traced(name, args, kwargs, GRIDS[grid])
    if found[0] in (Untraceable.__name__, UnknownValue.__name__):  # more is refused than Triton refuses: what no Program can hold
        return
    assert found == wanted
    if wanted[0] == "accepted":
        assert recorded >= launched  # configurations that the tuner drops are recorded, too
        assert bool(recorded) == bool(launched)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(sorted(KERNELS)),
    st.lists(st.sampled_from(["tensor", *sorted(VALUES)]), max_size=6),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(sorted(VALUES)), max_size=3),
    st.sampled_from(sorted(GRIDS)),
)
def test_any_launch(name: str, args: list[str], kwargs: dict[str, str], grid: str) -> None:
    check(name, args, kwargs, grid)


@pytest.mark.parametrize("name", KERNELS)
def test_every_grid(name: str) -> None:
    for grid in GRIDS:
        check(name, ["tensor", "int"], {}, grid)


@pytest.mark.parametrize("name", KERNELS)
def test_every_word(name: str) -> None:
    for word in NAMES:
        for value in ("float", "bool"):
            check(name, ["tensor", "int"], {word: value}, "1")
