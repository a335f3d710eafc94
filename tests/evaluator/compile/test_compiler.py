"""What a compilation reports and keeps, and what a compile child may not claim. Compiles for sm_90 for real; needs no GPU."""

from __future__ import annotations

import copy
import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import triton.language as tl

from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.binaries import (
    MAX_CONFIGS,
    Kernels,
    collect,
    compiled_from_json,
    read,
    step_of,
    text_digest,
    write,
)
from rlkernel.evaluator.compile.compiler import Compilation, compile_program
from rlkernel.evaluator.compile.signature import CompileFailed, MachineLacks
from rlkernel.evaluator.compile.telling import _INSTEAD
from rlkernel.evaluator.cpu.module import step_number
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import Binaries
from rlkernel.evaluator.processes import sandbox
from rlkernel.evaluator.program.schema import Config, Function, Launch, Op, Program
from rlkernel.evaluator.program.values import DeviceRef, FunctionRef, MalformedProgram, ModuleRef, TensorRef, TorchName

PROFILE = PROFILES["h200"]
TL = {"tl": ModuleRef("triton.language")}
COPY = """def copy(x, o, n, k, s, flag, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n) * s + k, mask=(i < n) & flag)
"""
ARGS = {"x": TensorRef(0), "o": TensorRef(1), "n": 1000, "k": 1, "s": 0.5, "flag": True}
TYPES = (("x", "*fp32"), ("o", "*fp32"), ("n", "i32"), ("s", "fp32"), ("flag", "u1"))
"""The types of the parameters: `k` is specialised to 1, and BLOCK is a constant."""


def config(block: int = 128, grid: int = 8, **options: int) -> Config:
    return Config({"BLOCK": block}, options, (grid, 1, 1))


def program(*configs: Config, functions: tuple[Function, ...] = (Function("copy", COPY, 3, TL),), **args: Any) -> Program:
    fresh = Op("aten.empty_like.default", (TensorRef(0),), {}, (1,))
    launch = Launch(0, {**ARGS, **args}, configs or (config(),), 9)
    return Program(functions, (), (), {}, (0,), (fresh, launch), TensorRef(1))


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Compilation]:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))

    def call(one: Program, configs: dict[int, list[int]] | Literal["all"] = "all") -> Compilation:
        inputs = [torch.empty(1024, device="meta") for _ in one.inputs]
        return compile_program(one, ([], inputs), PROFILE, tmp_path / "kept", configs)

    return call


def reply_of(made: Compilation) -> tuple[dict[str, Any], bytes]:
    """As the compile child sends it, over the wire and back."""
    body = wire.Body()
    message = codec.pack(Binaries(made.kernels, {key: body.add_bytes(cubin) for key, cubin in made.binaries.items()}), body)
    size, _ = wire.sizes(message[:16])
    return wire.parse(message[16 : 16 + size]), message[16 + size :]


def test_facts_of_a_launch(build: Callable[..., Compilation]) -> None:
    facts = build(program()).kernels["1"][0]
    assert facts.parameters == TYPES
    assert (facts.symbol, facts.name, facts.stores) == ("copy", "copy", ("o",))
    assert (facts.num_warps, facts.num_ctas, facts.shared_bytes, facts.spills) == (4, 1, 0, 0)
    assert (facts.global_scratch_size, facts.profile_scratch_size, facts.tensordesc_meta) == (0, 0, ())
    assert 0 < facts.registers <= 255


@pytest.mark.parametrize(
    ("value", "kind"),
    [(2, "i32"), (2**31 - 1, "i32"), (2**31, "i64"), (-(2**31) - 1, "i64"), (2**63, "u64"), (False, "u1"), (1.0, "fp32")],
)
def test_numbers_have_tritons_types(build: Callable[..., Compilation], value: float, kind: str) -> None:
    assert dict(build(program(k=value)).kernels["1"][0].parameters)["k"] == kind


def test_a_cluster_of_blocks(build: Callable[..., Compilation]) -> None:
    assert build(program(config(num_ctas=2))).kernels["1"][0].num_ctas == 2


def test_all_configs_without_the_equal_and_the_failing(build: Callable[..., Compilation]) -> None:
    equal_on_another_grid = config(128, 16)
    configs = (
        config(128),
        config(128, num_warps=64),
        config(256, 4),
        config(128),
        equal_on_another_grid,
        config(128, num_warps=8),
    )
    made = build(program(*configs))
    assert sorted(made.kernels["1"]) == [0, 2, 4, 5]
    assert made.kernels["1"][0].key == made.kernels["1"][4].key
    assert len(made.binaries) == 3


def test_one_config_or_the_next_that_works(build: Callable[..., Compilation]) -> None:
    one = program(config(128, num_warps=64), config(256), config(512))
    assert list(build(one, {1: [2, 0]}).kernels["1"]) == [2]
    assert list(build(one, {}).kernels["1"]) == [1]
    assert list(build(one).kernels["1"]) == [1, 2]


ASSERTS = COPY.replace("    i =", "    tl.static_assert(BLOCK < 200)\n    i =")
SPLITS = COPY.replace("    i =", "    tl.arange(0, BLOCK // 128 * 3 - 1)\n    i =")


@pytest.mark.parametrize(("text", "detail"), [(ASSERTS, None), (SPLITS, "power of 2")])
def test_only_what_triton_passes_over_is_passed_over(build: Callable[..., Compilation], text: str, detail: str | None) -> None:
    """Of blocks of 128 and 256 one text asserts that they are below 200, which ends no autotuner; `tl.arange(0, 5)` ends it."""
    one = program(config(128), config(256), functions=(Function("copy", text, 3, TL),))
    if detail is None:
        assert list(build(one).kernels["1"]) == [0]
    else:
        with pytest.raises(CompileFailed, match=detail):
            build(one)


def test_launches_that_are_tuned_together_take_what_the_first_one_takes(build: Callable[..., Compilation]) -> None:
    """Configurations 0 and 3 are one binary for the first launch, 1 does not compile, and 2 has too many numbers for the second
    one, which would take 0 by itself."""
    large, warps = config(2**21), config(128, num_warps=64)
    one = program(config(128), warps, config(256), config(128))
    first = replace(one.launches[0], tuned_with=5)
    second = replace(first, configs=(config(128), warps, large, config(512)))
    both = replace(one, forward=(one.forward[0], first, second))
    assert {step: sorted(found) for step, found in build(both).kernels.items()} == {"1": [0, 2], "2": [0]}
    assert {step: list(found) for step, found in build(both, {1: [1, 3, 0]}).kernels.items()} == {"1": [3], "2": [3]}
    with pytest.raises(CompileFailed, match="numel"):
        build(both, {1: [2]})


def test_no_config_works(build: Callable[..., Compilation]) -> None:
    with pytest.raises(CompileFailed, match=r"line 4: .*power of 2"):
        build(program(config(3), config(5)))


def test_more_threads_than_a_block_may_have_are_refused(build: Callable[..., Compilation]) -> None:
    assert build(program(config(1024, num_warps=32))).kernels["1"][0].num_warps == 32
    with pytest.raises(CompileFailed, match="needs 2048 threads per program, the GPU has 1024"):
        build(program(config(1024, num_warps=64)))


def test_configs_beyond_the_limit_are_left_out(build: Callable[..., Compilation]) -> None:
    made = build(program(*[config(128)] * MAX_CONFIGS, config(256)))
    assert sorted(made.kernels["1"]) == [0]
    with pytest.raises(CompileFailed):
        build(program(*[config(128, num_warps=64)] * MAX_CONFIGS, config(256)))


def test_launches_of_the_constructor_have_names_of_their_own(build: Callable[..., Compilation]) -> None:
    one = program()
    made_there = (
        Op("aten.empty.memory_format", ([1024],), {"dtype": TorchName("dtype", "float32"), "device": DeviceRef()}, (2,)),
    )
    launch = Launch(0, {**ARGS, "x": TensorRef(2), "o": TensorRef(2)}, (config(),), 5)
    found = build(replace(one, init=(*made_there, launch)))
    assert sorted(found.kernels) == ["1", "init:1"]
    assert len(found.binaries) == 1  # the same binary is made once


def take(one: Program, made: Compilation, directory: Path) -> Kernels:
    return keep(one, *reply_of(made), directory)


def keep(one: Program, header: dict[str, Any], body: bytes, directory: Path) -> Kernels:
    """What the pool makes of a compile child's reply. Raises wire.BadMessage."""
    found = codec.unpack(header, Binaries)
    sent = {key: wire.raw(span, body) for key, span in found.cubins.items()}
    return collect(one, found.kernels, sent, directory, PROFILE.arch)


def test_kept_binaries_are_not_compiled_again(build: Callable[..., Compilation], tmp_path: Path) -> None:
    first = take(program(), build(program()), tmp_path / "kept")
    facts = first.facts["1"][0]
    assert not facts.from_cache
    assert first.cubins[facts.key][:4] == b"\x7fELF"
    again = build(program())
    assert again.binaries == {}
    second = take(program(), again, tmp_path / "kept")
    assert second.cubins == first.cubins
    assert second.facts == {"1": {0: replace(facts, from_cache=True)}}
    assert [file.name for file in (tmp_path / "kept").iterdir()] == [facts.key]


@pytest.mark.parametrize("damage", [lambda raw: b"", lambda raw: raw[:-1], lambda raw: raw[:-1] + b"?", lambda raw: raw[:20]])
def test_a_torn_file_is_compiled_again(
    build: Callable[..., Compilation], tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    facts = take(program(), build(program()), tmp_path / "kept").facts["1"][0]
    file = tmp_path / "kept" / facts.key
    file.write_bytes(damage(file.read_bytes()))
    assert read(tmp_path / "kept", facts.key) is None
    assert list(build(program()).binaries) == [facts.key]


def test_a_file_under_another_name_is_not_taken(build: Callable[..., Compilation], tmp_path: Path) -> None:
    facts = take(program(), build(program()), tmp_path).facts["1"][0]
    other = facts.key[::-1]
    (tmp_path / facts.key).rename(tmp_path / other)
    assert read(tmp_path, other) is None
    assert read(tmp_path, facts.key) is None


def test_the_digest_is_of_what_decides_a_binary() -> None:
    helper, other = (
        Function("helper", "def helper(x):\n    return x\n", 1, TL),
        Function("idle", "def idle():\n    pass\n", 1, {}),
    )
    caller = Function("copy", COPY, 3, {**TL, "h": FunctionRef(1)})

    def digest(*functions: Function, arch: int = 90, one: Config | None = None) -> str:
        whole = program(functions=functions)
        return text_digest(whole, whole.launches[0], one or config(), arch)

    base = digest(caller, helper)
    assert digest(replace(caller, line=70), helper) == base
    assert digest(caller, helper, other) == base
    assert digest(replace(caller, bindings={**TL, "h": FunctionRef(2)}), other, helper) == base
    assert digest(caller, helper, one=config(grid=99)) == base
    different = {
        digest(caller, replace(helper, source="def helper(x):\n    return -x\n")),
        digest(replace(caller, source=COPY + " "), helper),
        digest(caller, helper, one=config(64)), digest(caller, helper, one=config(num_warps=8)), digest(caller, helper, arch=100),
    }  # fmt: skip
    assert len(different | {base}) == 6


CONFINED = """
import sys
from dataclasses import replace
from pathlib import Path
from rlkernel.evaluator.processes import sandbox
scratch, kept = Path(sys.argv[1]), Path(sys.argv[2])
sandbox.confine(cpu_seconds=10, memory_bytes=1 << 30, file_bytes=1 << 20, writable=(scratch,), readable=(kept,))
(scratch / "ptx").write_text("mine")
print((kept / "known").read_text())
known = kept / "known"
for write in (lambda: (kept / "new").write_text("x"), lambda: known.write_text("x"), known.unlink):
    try:
        write()
    except PermissionError:
        print("refused")
"""


@pytest.mark.skipif(sandbox.level().landlock == 0, reason="sandbox tests (a Linux kernel with Landlock)")
def test_a_compile_child_reads_binaries_and_cannot_write_them(tmp_path: Path) -> None:
    scratch, kept = tmp_path / "scratch", tmp_path / "kept"
    scratch.mkdir()
    kept.mkdir()
    (kept / "known").write_text("known")
    run = subprocess.run([sys.executable, "-c", CONFINED, str(scratch), str(kept)], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["known", "refused", "refused", "refused"]


Forge = Callable[[dict[str, Any], dict[str, Any]], None]
"""(reply, its facts of step 1, config 0): changed in place."""


def places(reply: dict[str, Any]) -> Any:
    """Which facts each step has."""
    return reply["kernels"]["places"]


def add(reply: dict[str, Any], step: str) -> None:
    places(reply)[step] = places(reply)["1"]


FORGERIES: dict[str, tuple[Forge, str]] = {
    "another kernel's key": (lambda r, f: f.update(key="0" * 32 + f["key"][32:]), "under another kernel's name"),
    "no key": (lambda r, f: f.update(key="../../x"), "bad facts"),
    "unknown step": (lambda r, f: add(r, "7"), "a binary for step '7'"),
    "another name of a step": (lambda r, f: add(r, "01"), "a binary for step '01'"),
    "digits of another script": (lambda r, f: add(r, "١"), "a binary for step '١'"),
    "no launch": (lambda r, f: add(r, "0"), "which is no launch"),
    "unknown config": (lambda r, f: places(r)["1"].update({"1": 0}), "a binary for config 1"),
    "unknown parameter": (lambda r, f: f.update(parameters=[["y", "i32"]]), "unknown parameters"),
    "a type that is none": (lambda r, f: f.update(parameters=[["x", "*fp32; rm"]]), "bad facts"),
    "absurd memory": (lambda r, f: f.update(global_scratch_size=1 << 60), "bad facts"),
    "negative warps": (lambda r, f: f.update(num_warps=-1), "bad facts"),
    "one fact too many": (lambda r, f: f.update(speedup=2.0), "bad facts"),
    "no binary": (lambda r, f: r.update(cubins={}), "neither sent nor kept"),
    "bytes outside": (lambda r, f: r["cubins"][f["key"]].update(at=1 << 20), "bytes outside the message"),
    "facts that there are not": (lambda r, f: places(r)["1"].update({"0": 1}), "kernels: an item that there is not"),
    "facts before the first": (lambda r, f: places(r)["1"].update({"0": -1}), "kernels: an item that there is not"),
    "no places": (lambda r, f: r["kernels"].pop("places"), "kernels: not items and their places"),
    "no kernels": (lambda r, f: r.pop("kernels"), "no Binaries: other fields"),
}


def test_steps_have_up_to_six_digits() -> None:
    launch = program().launches[0]
    many = replace(program(), forward=(launch,) * 100_001, init=(launch,) * 2)
    assert step_of(many, "100000") is launch and step_of(many, "init:1") is launch
    for name in ("100001", "init:2", "-1", "init:", "1e3", "00", "9" * 5000):
        with pytest.raises(wire.BadMessage, match="a binary for step"):
            step_of(many, name)
    assert [step_number(name) for name in ("0", "100000", "init:0", "init:262143")] == [0, 100000, -1, -262144]
    for name in ("01", "init:00", "١", "1000000", ""):
        with pytest.raises(MalformedProgram, match="a configuration for step"):
            step_number(name)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(tmp_path_factory.mktemp("triton")))
        return reply_of(
            compile_program(program(), ([], [torch.empty(1024, device="meta")]), PROFILE, Path("/nonexistent"), "all")
        )


@pytest.mark.parametrize("name", FORGERIES)
def test_what_a_compile_child_may_not_claim(honest: tuple[dict[str, Any], bytes], tmp_path: Path, name: str) -> None:
    forge, message = FORGERIES[name]
    reply = copy.deepcopy(honest[0])
    forge(reply, reply["kernels"]["items"][0])
    with pytest.raises(wire.BadMessage, match=message):
        keep(program(), reply, honest[1], tmp_path)


def test_facts_of_a_hit_are_the_kept_ones(honest: tuple[dict[str, Any], bytes], tmp_path: Path) -> None:
    """A child that finds a binary in the cache cannot say other things of it than were said when it was made."""
    facts = compiled_from_json(honest[0]["kernels"]["items"][0])
    write(tmp_path, facts, b"kept")
    reply = copy.deepcopy(honest[0])
    reply["kernels"]["items"][0]["stores"] = []
    reply["cubins"] = {}
    taken = keep(program(), reply, b"", tmp_path)
    assert taken.facts["1"][0].stores == ("o",)
    assert taken.cubins == {facts.key: b"kept"}


def test_a_compiler_that_fails_without_a_word_is_the_kernels_failure(
    build: Callable[..., Compilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*args: Any, **kwargs: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("triton.compile", silent)
    with pytest.raises(CompileFailed, match=r"^kernel copy: AssertionError$"):
        build(program())


def raising(error: Exception) -> Callable[..., None]:
    def call(*args: Any, **kwargs: Any) -> None:
        raise error

    return call


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.EAGAIN])
def test_what_the_machine_lacks_is_not_the_kernels_failure(
    number: int, build: Callable[..., Compilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton.compile", raising(OSError(number, "no")))
    with pytest.raises(MachineLacks) as lacks:
        build(program())
    assert (lacks.value.number, lacks.value.path) == (number, tempfile.gettempdir())


def test_a_full_disk_of_which_ptxas_tells_is_not_the_kernels_failure(
    build: Callable[..., Compilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton.compile", raising(RuntimeError("`ptxas` failed")))
    with pytest.raises(CompileFailed, match="`ptxas` failed"):  # the disk takes what is written
        build(program())
    monkeypatch.setattr("tempfile.TemporaryFile", raising(OSError(errno.ENOSPC, "No space left on device")))
    with pytest.raises(MachineLacks, match="the disk is full"):
        build(program())


def test_a_disk_that_is_full_of_the_kernels_own_files_is_its_failure(
    build: Callable[..., Compilation], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Beside 17 MiB of its own; of less than the 16 MiB that are left without them somebody else has filled it."""
    folder = Path(os.environ["TRITON_CACHE_DIR"])
    folder.mkdir(exist_ok=True)

    def filling(size: int) -> Callable[..., None]:
        def call(*args: Any, **kwargs: Any) -> None:
            (folder / "k.llir").write_bytes(bytes(size))
            raise OSError(errno.ENOSPC, "No space left on device")

        return call

    monkeypatch.setattr("triton.compile", filling(17 << 20))
    with pytest.raises(CompileFailed, match="No space left"):
        build(program())
    assert not any(folder.iterdir())
    monkeypatch.setattr("triton.compile", filling(15 << 20))
    with pytest.raises(MachineLacks, match="the disk is full"):
        build(program())


def test_a_name_that_no_file_may_have_is_the_kernels_failure(
    build: Callable[..., Compilation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("triton.compile", raising(OSError(errno.ENAMETOOLONG, "File name too long")))
    with pytest.raises(CompileFailed, match="File name too long"):
        build(program())


def test_an_error_that_triton_quotes_is_told_as_python_tells_it(build: Callable[..., Compilation]) -> None:
    code = COPY.replace("tl.load(", "tl.loadd(")
    with pytest.raises(
        CompileFailed, match=r"^line 5: AttributeError: module 'triton.language' has no attribute 'loadd'; write tl.load$"
    ):
        build(program(functions=(Function("copy", code, 3, TL),)))


def test_what_to_write_is_told_for_names_that_torch_has_and_triton_has_not(build: Callable[..., Compilation]) -> None:
    code = COPY.replace("tl.load(", "tl.mean(")
    with pytest.raises(CompileFailed, match=r"no attribute 'mean'; write tl.sum\(x, axis\) / n$"):
        build(program(functions=(Function("copy", code, 3, TL),)))
    assert not any(hasattr(tl, name) for name in _INSTEAD)
