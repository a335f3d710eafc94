"""Compiled kernels as facts and bytes: what a launch needs, and where they are kept. The pool is the only writer.

A compile child runs LLVM and ptxas on a candidate's text, so it may read the directory but never write it, and what it sends is
kept under a name of which the pool computes the first half itself, from the kernel's text, constants and options: whatever a
child makes up, it makes up for the very text that it was given.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import secrets
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rlkernel.evaluator import wire
from rlkernel.evaluator.program.reached import kernel_text
from rlkernel.evaluator.program.schema import Config, Launch, Program
from rlkernel.evaluator.version import binary_version

STEP_DIGITS = 6
"""The most digits of a step's number: a Program has 131,072 steps at most, and twice as many that prepare."""
MAX_CONFIGS = 16
"""Configurations of an autotuned launch that are compiled; further ones are not considered."""
_KEY = re.compile(r"[0-9a-f]{32}-[0-9a-f]{32}")
_TYPE = re.compile(r"\*?[a-z][a-z0-9]{1,10}|tensordesc<[a-z][a-z0-9]{1,10}\[\d{1,7}(, \d{1,7}){0,4}\]>")


@dataclass(frozen=True, slots=True)
class Compiled:
    """Facts about one binary; its bytes lie in the cache under `key`."""

    key: str
    name: str
    stores: tuple[str, ...]
    """Parameters, pointers or descriptors, that the TTIR stores to."""
    registers: int
    """Per thread."""
    spills: int
    """Bytes of stack per thread."""
    shared_bytes: int
    """Dynamic shared memory per block."""
    num_warps: int
    """The warps of a block: its threads / 32."""
    num_ctas: int
    """Blocks per cluster; the grid's first dimension is multiplied by it."""
    tf32: bool
    """Whether a float32 dot uses the tf32 matrix units."""
    symbol: str
    """Entry point in the cubin."""
    global_scratch_size: int
    """Bytes per block of a cluster and program: a launch needs grid * num_ctas times as many."""
    global_scratch_align: int
    profile_scratch_size: int
    parameters: tuple[tuple[str, str], ...]
    """(argument, Triton type) of what the kernel takes, in order: "*fp32", "i32", "u1", "tensordesc<fp16[64, 64]>". Constants and
    integers that were specialised to 1 are not among them."""
    tensordesc_meta: tuple[dict[str, Any] | None, ...]
    """For each tensor descriptor among `parameters`: {"swizzle", "elem_size", "elem_type", "block_size", "fp4_padded"} of its
    tensor map, or None where Triton passes a plain pointer instead."""
    loads: tuple[str, ...] = ()
    """Parameters, pointers or descriptors, that the TTIR loads from."""
    from_cache: bool = False


def compiled_from_json(data: Any) -> Compiled:
    """Validate what a compile child or a file says. Raises wire.BadMessage."""
    try:
        facts = Compiled(**{
            **data, "stores": tuple(data["stores"]), "loads": tuple(data["loads"]),
            "parameters": tuple((n, k) for n, k in data["parameters"]),
            "tensordesc_meta": tuple(data["tensordesc_meta"]),
        })  # fmt: skip
        sizes = (facts.registers, facts.spills, facts.shared_bytes, facts.global_scratch_size, facts.profile_scratch_size)
        good = (
            _KEY.fullmatch(facts.key) is not None and facts.symbol.isidentifier() and len(facts.symbol) < 1000
            and facts.name.isidentifier() and all(_whole(size, 0, 1 << 30) for size in sizes)
            and _whole(facts.num_warps, 1, 64) and _whole(facts.num_ctas, 1, 16) and _whole(facts.global_scratch_align, 0, 4096)
            and isinstance(facts.tf32, bool) and isinstance(facts.from_cache, bool)
            and all(isinstance(name, str) for name in (*facts.stores, *facts.loads))
            and all(name.isidentifier() and _TYPE.fullmatch(kind) for name, kind in facts.parameters)
            and all(meta is None or _descriptor_layout(meta) for meta in facts.tensordesc_meta)
        )  # fmt: skip
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise wire.BadMessage(f"bad facts of a binary: {error}") from error
    if not good:
        raise wire.BadMessage("bad facts of a binary")
    return facts


def _whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _descriptor_layout(meta: Any) -> bool:
    block = meta["block_size"]
    numbers = [meta["swizzle"], meta["elem_size"], meta["elem_type"], *block]
    return isinstance(block, list) and 1 <= len(block) <= 5 and all(_whole(n, 0, 1 << 20) for n in numbers)


def text_digest(program: Program, launch: Launch, config: Config, arch: int) -> str:
    """A digest of everything but the arguments that goes into a binary: the kernel with the functions that it can reach, its
    constants and options, the target, and the versions that compile. Other kernels of the Program and line numbers are left out.
    """
    parts = [*kernel_text(program.functions, launch.function, config.constants), config.options, arch, _toolchain()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


@functools.cache
def _toolchain() -> str:
    return f"{version('triton')} {binary_version()}"


def read(directory: Path, key: str) -> tuple[Compiled, bytes] | None:
    """A kept binary; None where there is none, or a torn or foreign file."""
    try:
        raw = (directory / key).read_bytes()
        text, size = wire.sizes(raw[: wire.PREFIX.size])
        header, cubin = wire.parse(raw[wire.PREFIX.size :][:text]), raw[wire.PREFIX.size + text :]
        if len(cubin) != size or header.get("sha256") != hashlib.sha256(cubin).hexdigest():
            return None
        facts = compiled_from_json(header.get("facts"))
    except (OSError, wire.BadMessage, struct.error):
        return None
    return (replace(facts, from_cache=True), cubin) if facts.key == key else None


def write(directory: Path, facts: Compiled, cubin: bytes) -> None:
    """Whole or not at all: renamed into place. For trusted processes."""
    directory.mkdir(parents=True, exist_ok=True)
    body = wire.Body()
    body.add_bytes(cubin)
    data = wire.pack({"facts": asdict(facts), "sha256": hashlib.sha256(cubin).hexdigest()}, body)
    temporary = directory / f".{facts.key}.{secrets.token_hex(8)}"  # two threads may write the same binary
    temporary.write_bytes(data)
    temporary.rename(directory / facts.key)


@dataclass(frozen=True, slots=True)
class Kernels:
    """The binaries of one Program."""

    facts: dict[str, dict[int, Compiled]]
    """Step ("3" in forward, "init:0" in `Program.once`) -> index of its launch's config -> facts."""
    cubins: dict[str, bytes]
    """Key -> binary."""


def step_of(program: Program, name: str) -> Launch:
    """The launch that "3" or "init:0" names. Raises wire.BadMessage."""
    in_init = name.startswith("init:")
    steps = program.once if in_init else program.forward
    number = name.removeprefix("init:")
    index = wire.whole_number(number, STEP_DIGITS)
    if index is None or index >= len(steps):
        raise wire.BadMessage(f"a binary for step {name[:20]!r}")
    step = steps[index]
    if not isinstance(step, Launch):
        raise wire.BadMessage(f"a binary for step {name}, which is no launch")
    return step


def collect(
    program: Program, kernels: Mapping[str, Mapping[int, Compiled]], sent: Mapping[str, bytes], directory: Path, arch: int
) -> Kernels:
    """What a compile child says, checked; the binaries that it has sent are kept, the others are read from the cache again.

    kernels: as `Kernels.facts`; sent: key -> binary. Raises wire.BadMessage when the child claims what is not its to give.
    """
    found: dict[str, dict[int, Compiled]] = {}
    cubins: dict[str, bytes] = {}
    known: dict[str, Compiled] = {}
    digests: dict[str, str] = {}
    for name, configs in kernels.items():
        launch = step_of(program, name)
        for number, facts in configs.items():
            if not 0 <= number < len(launch.configs):
                raise wire.BadMessage(f"a binary for config {number}")
            config = launch.configs[number]
            text = repr((launch.function, config.constants, config.options))  # of a hundred thousand launches, few differ
            if text not in digests:
                digests[text] = text_digest(program, launch, config, arch)
            if facts.key.partition("-")[0] != digests[text]:
                raise wire.BadMessage("a binary under another kernel's name")
            if facts.key not in known:
                known[facts.key], cubins[facts.key] = _take(facts, sent, directory)
            facts = known[facts.key]
            if not {parameter for parameter, _ in facts.parameters} <= launch.args.keys():
                raise wire.BadMessage("a binary with unknown parameters")
            found.setdefault(name, {})[number] = facts
    return Kernels(found, cubins)


def _take(facts: Compiled, sent: Mapping[str, bytes], directory: Path) -> tuple[Compiled, bytes]:
    """Facts and bytes of one key: those that were sent, if they were, else those of the cache."""
    if facts.key in sent:
        cubin = sent[facts.key]
        facts = replace(facts, from_cache=False)
        write(directory, facts, cubin)
        return facts, cubin
    kept = read(directory, facts.key)
    if kept is None:
        raise wire.BadMessage("a binary that is neither sent nor kept")
    return kept
