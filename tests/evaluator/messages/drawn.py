"""Hypothesis strategies for messages, made from their fields."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.messages.children import StepTime
from rlkernel.evaluator.messages.codec import ONCE
from rlkernel.evaluator.program.schema import Config, Function, Launch, Literal, Op, Program
from rlkernel.evaluator.program.values import ModuleRef, TensorRef
from rlkernel.evaluator.program.variant import KeptConfigs

SOURCE = "def kernel(x):\n    pass\n"
PROGRAM = Program(
    functions=(Function("kernel", SOURCE, 3, {"tl": ModuleRef("triton.language")}, ("n",)),),
    init_inputs=(0,),
    init=(Literal(1, "float32", (2,), "AAAAAAAAAAA="),),
    state={"weight": 1},
    inputs=(2,),
    forward=(
        Op("aten.empty_like.default", (TensorRef(2),), {"dtype": None}, (3, None)),
        Launch(0, {"x": TensorRef(2), "n": 7}, (Config({"BLOCK": 64}, {"num_warps": 4}, (8, 1, 1)),), 9),
    ),
    output=[TensorRef(3)],
)
COMPILED = Compiled(
    f"{'0' * 32}-{'f' * 32}",
    "kernel",
    ("x",),
    32,
    0,
    1024,
    4,
    1,
    False,
    "kernel",
    0,
    1,
    0,
    (("x", "*fp32"), ("n", "i32")),
    (None,),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type that a message may hold."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated and arguments[1] == ONCE:
        return of(arguments[0])
    if origin is Annotated:
        return _bounded(arguments[0], arguments[1])
    if origin in (Union, types.UnionType):
        return st.none() | of(next(argument for argument in arguments if argument is not type(None)))
    if origin is tuple:
        if arguments[-1] is ...:
            return st.lists(of(arguments[0]), max_size=2).map(tuple)
        return st.tuples(*(of(one) for one in arguments))
    if origin is not None:
        keys = st.integers(0, 10**9 - 1) if arguments[0] is int else of(arguments[0])
        return st.dictionaries(keys, of(arguments[1]), max_size=2)
    return _plain(kind)


def _plain(kind: Any) -> st.SearchStrategy[Any]:
    known = {
        Any: JSON, bool: st.booleans(), int: st.integers(), str: st.text(), float: st.floats(allow_nan=False),
        Program: st.just(PROGRAM), Compiled: st.just(COMPILED),
    }  # fmt: skip
    if kind in known:
        return known[kind]
    if kind is StepTime:
        work = st.tuples(st.integers(0, 63), st.none()) | st.tuples(st.none(), st.text(min_size=1, max_size=200))
        return st.builds(lambda step, us, one: StepTime(step, us, *one), st.integers(0, 4095), st.floats(0, 1e15), work)
    if kind is KeptConfigs:
        return st.builds(
            lambda function, kept: KeptConfigs(function, 256, tuple(kept)), st.integers(0, 63), st.lists(st.integers(0, 255))
        )
    if issubclass(kind, StrEnum):
        return st.sampled_from(list(kind))
    assert is_dataclass(kind), kind
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{field.name: of(hints[field.name]) for field in fields(kind)})


def _bounded(kind: Any, bounds: Any) -> st.SearchStrategy[Any]:
    if kind is str:
        return st.text(min_size=int(bounds.low), max_size=int(bounds.high))
    return st.integers(int(bounds.low), int(bounds.high)) if kind is int else st.floats(bounds.low, bounds.high)
