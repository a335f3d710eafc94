"""Tensor descriptors: as data of a Program, as kernel parameters compiled for TMA, and what they may span."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.compile.compiler import OutsideStorage, compile_program
from rlkernel.evaluator.compile.signature import CompileFailed
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.program import encoding
from rlkernel.evaluator.program.replay import Replay, tensors_in
from rlkernel.evaluator.program.schema import Config, Descriptor, Function, Launch, MalformedProgram, Op, Program
from rlkernel.evaluator.program.values import ModuleRef, TensorRef

TL = {"tl": ModuleRef("triton.language")}
HOST = """def k(x, o, n, B: tl.constexpr):
    row = tl.program_id(0) * B
    for start in range(0, n, B):
        o.store([row, start], x.load([row, start]) + 1.0)
"""
DEVICE = """def k(x, o, n, B: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[n, n], strides=[n, 1], block_shape=[B, B])
    target = tl.make_tensor_descriptor(o, shape=[n, n], strides=[n, 1], block_shape=[B, B])
    row = tl.program_id(0) * B
    for start in range(0, n, B):
        target.store([row, start], source.load([row, start]) + 1.0)
"""


def described(
    number: int, shape: tuple[int, ...] = (64, 64), strides: tuple[int, ...] = (64, 1), padding: str = "zero"
) -> Descriptor:
    return Descriptor(TensorRef(number), shape, strides, (16, 16), padding)


def program(source: str = HOST, x: Any = None, o: Any = None, *configs: Config) -> Program:
    fresh = Op("aten.empty_like.default", (TensorRef(0),), {}, (1,))
    args = {"x": x or described(0), "o": o or described(1), "n": 64}
    launch = Launch(0, args, configs or (Config({"B": 16}, {}, (4, 1, 1)),), 9)
    return Program((Function("k", source, 3, TL),), (), (), {}, (0,), (fresh, launch), TensorRef(1))


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[int, Compiled]]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def call(one: Program, dtype: torch.dtype = torch.float32) -> dict[int, Compiled]:
        inputs = [torch.empty(64, 64, dtype=dtype, device="meta")]
        return compile_program(one, ([], inputs), PROFILES["h200"], tmp_path, "all").kernels["1"]

    return call


def test_json_round_trip() -> None:
    blocks = {"x": (32, 16), "o": (32, 16)}
    one = program(HOST, None, None, Config({"B": 16}, {}, (4, 1, 1)), Config({"B": 16}, {}, (2, 1, 1), blocks))
    assert encoding.from_json(encoding.to_json(one)) == one


@pytest.mark.parametrize(
    "change",
    [
        {"block_shape": [16, 12]}, {"block_shape": [16]}, {"block_shape": [16, 0]}, {"block_shape": [2048, 1024]},
        {"block_shape": "16"},
        {"shape": [64]}, {"shape": [0, 64]}, {"shape": [64, True]}, {"shape": [1 << 31, 64]}, {"strides": [-64, 1]},
        {"strides": [64, 2]}, {"strides": None}, {"padding": "ones"}, {"padding": None},
    ],
)  # fmt: skip
def test_forged_descriptors_are_refused(change: dict[str, Any]) -> None:
    data = encoding.to_json(program())
    data["forward"][1]["args"]["x"]["descriptor"] |= change
    with pytest.raises(MalformedProgram):
        encoding.from_json(data)


@pytest.mark.parametrize("blocks", [{"n": [16, 16]}, {"y": [16, 16]}, {"x": [16]}, {"x": [16, 3]}, {"x": 16}, []])
def test_forged_blocks_are_refused(blocks: Any) -> None:
    data = copy.deepcopy(encoding.to_json(program()))
    data["forward"][1]["configs"][0]["blocks"] = blocks
    with pytest.raises(MalformedProgram):
        encoding.from_json(data)


@pytest.mark.parametrize("base", [None, 7, [{"t": 0}], {"float": "nan"}, {"descriptor": {}}])
def test_a_descriptor_needs_a_tensor(base: Any) -> None:
    data = encoding.to_json(program())
    data["forward"][1]["args"]["x"]["descriptor"]["base"] = base
    with pytest.raises(MalformedProgram):
        encoding.from_json(data)


def test_a_descriptor_needs_a_tensor_that_was_made() -> None:
    replay = Replay(program(x=described(99)), torch.device("meta"), lambda *_: None)
    with pytest.raises(MalformedProgram, match="tensor 99 is used before it is made"):
        replay.forward([torch.empty(64, 64, device="meta")], 0)


def test_replay_gives_launches_descriptors_and_observers_their_tensors() -> None:
    seen: list[dict[str, Any]] = []
    watched: list[Any] = []
    replay = Replay(
        program(x=described(0, (32, 60), (128, 1), padding="nan")), torch.device("cpu"), lambda s, c, args: seen.append(args)
    )
    x = torch.zeros(64, 64)
    replay.forward([x], 0, observe=lambda index, step, read, made: watched.append(list(read)))
    (args,) = seen
    assert args["x"].base is x
    assert args["x"] == Descriptor(x, (32, 60), (128, 1), (16, 16), "nan")
    assert args["x"].extent == 31 * 128 + 60
    assert [t is x for t in watched[-1]] == [True, False]
    assert len(tensors_in(args)) == 2


@pytest.mark.parametrize(
    ("dtype", "name", "size", "kind"),
    [(torch.float32, "fp32", 4, 7), (torch.float16, "fp16", 2, 6), (torch.bfloat16, "bf16", 2, 10)],
)
def test_host_descriptors_become_tensor_maps(
    build: Callable[..., dict[int, Compiled]], dtype: torch.dtype, name: str, size: int, kind: int
) -> None:
    facts = build(program(), dtype)[0]
    window = f"tensordesc<{name}[16, 16]>"
    assert facts.parameters == (("x", window), ("o", window), ("n", "i32"))
    assert facts.stores == ("o",)
    assert facts.global_scratch_size == 0
    # A row of 16 elements is 64 bytes (swizzle mode 2) or 32 bytes (mode 1); element types as the device numbers them.
    layout = {"swizzle": 2 if size == 4 else 1, "elem_size": size, "elem_type": kind, "block_size": [16, 16], "fp4_padded": False}
    assert facts.tensordesc_meta == (layout, layout)


def test_blocks_of_a_config_override_the_descriptors(build: Callable[..., dict[int, Compiled]]) -> None:
    wide = Config({"B": 32}, {}, (2, 1, 1), {"x": (32, 32), "o": (32, 32)})
    found = build(program(HOST, None, None, Config({"B": 16}, {}, (4, 1, 1)), wide))
    assert [dict(found[i].parameters)["x"] for i in (0, 1)] == ["tensordesc<fp32[16, 16]>", "tensordesc<fp32[32, 32]>"]
    assert found[1].tensordesc_meta[0] is not None
    assert found[1].tensordesc_meta[0]["block_size"] == [32, 32]


def test_descriptors_of_the_device_need_scratch(build: Callable[..., dict[int, Compiled]]) -> None:
    facts = build(program(DEVICE, TensorRef(0), TensorRef(1)))[0]
    assert facts.parameters == (("x", "*fp32"), ("o", "*fp32"), ("n", "i32"))
    assert facts.stores == ("o",)
    assert (facts.global_scratch_size, facts.global_scratch_align) == (2 * 128, 128)  # one tensor map for each descriptor
    assert facts.tensordesc_meta == ()


@pytest.mark.parametrize(
    ("shape", "strides", "elements"), [((65, 64), (64, 1), 4160), ((64, 65), (64, 1), 4097), ((2, 64), (4064, 1), 4128)]
)
def test_a_window_must_lie_in_its_tensor(
    build: Callable[..., dict[int, Compiled]], shape: tuple[int, ...], strides: tuple[int, ...], elements: int
) -> None:
    with pytest.raises(OutsideStorage, match=f"line 9: tensor descriptor x spans {elements} elements, its tensor has 4096"):
        build(program(x=described(0, shape, strides)))


def test_a_window_that_just_fits(build: Callable[..., dict[int, Compiled]]) -> None:
    assert build(program(x=described(0, (2, 32), (4064, 1))))  # 4064 + 32 = 4096


def test_triton_refuses_descriptors_of_booleans(build: Callable[..., dict[int, Compiled]]) -> None:
    with pytest.raises(CompileFailed, match="dtype bool, which Triton lacks"):
        build(program(), torch.bool)
