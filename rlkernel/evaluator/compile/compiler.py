"""From a Program's launches to GPU binaries, on the trusted side, for a named target. Needs no GPU.

Runs in a forked child of its own, because LLVM and ptxas crash and hang on some inputs. It may read the cache of binaries and
never writes it (see `binaries.py`).

How a binary is launched, the same in Triton 3.6 and 3.7 (`triton/backends/nvidia/driver.py`):
- Parameters: every argument but constants and integers that were specialised to 1, unused ones included, in the kernel's order;
  then two pointers, global scratch and profile scratch (null where the size is 0).
- A pointer, i64 and u64 take 8 bytes, i32 and fp32 4, bool (u1) 1; Python floats are always fp32.
- A tensor descriptor with a layout in `tensordesc_meta` is a 128-byte CUtensorMap, then rank i32 sizes, then rank i64 strides.
  Without one: the base pointer, rank i64 sizes, rank i64 strides, one flag (padding is NaN; Triton 3.7 a second one, round to
  tf32), then again rank i32 sizes and rank i64 strides.
- Grid (x * num_ctas, y, z), block (32 * num_warps, 1, 1). num_ctas > 1: attributes cluster dimension (num_ctas, 1, 1) and cluster
  scheduling policy "spread"; 16 also needs the function attribute that allows non-portable cluster sizes.
- Scratch of `global_scratch_size * num_ctas * programs` bytes, aligned to `global_scratch_align`, fresh for each launch.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure
from triton.runtime.errors import PTXASError
from triton.runtime.jit import JITFunction

from rlkernel.errors import one_line
from rlkernel.evaluator.compile.binaries import MAX_CONFIGS, Compiled, read, text_digest
from rlkernel.evaluator.compile.charging import charge_children
from rlkernel.evaluator.compile.files import Written, check_machine, written_once
from rlkernel.evaluator.compile.libdevice import linked_in_pieces
from rlkernel.evaluator.compile.signature import CompileFailed, Signature, signature
from rlkernel.evaluator.compile.telling import first_line
from rlkernel.evaluator.compile.ttir import touched_arguments
from rlkernel.evaluator.compile.work import BoundedSource, TooMuch, bounded
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.program.kernel_rules import binding_value
from rlkernel.evaluator.program.kernel_source import KernelSet
from rlkernel.evaluator.program.kernel_text import KernelRejected, canonical
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Config, Function, Launch, Program
from rlkernel.evaluator.program.values import Descriptor, MalformedProgram, Value

knobs.compilation.disable_line_info = True  # a twentieth of a compilation, and nothing reads it
MAX_THREADS = 1024
"""Threads that one block may have, on every NVIDIA GPU."""


class OutsideStorage(Exception):
    """A tensor descriptor claims more than its tensor's memory."""


def cache_key(program: Program, launch: Launch, config: Config, sig: Signature, profile: DeviceProfile) -> str:
    """The kernel's text, constants and options, which the pool computes too; and how the arguments specialise it."""
    arguments = hashlib.sha256(json.dumps([sig.types, sig.divisible], sort_keys=True).encode()).hexdigest()[:32]
    return f"{text_digest(program, launch, config, profile.arch)}-{arguments}"


def resources(cubin: bytes) -> tuple[int, int]:
    """(registers per thread, stack bytes per thread) from a cubin's ELF sections."""
    offset, entry, count, names = struct.unpack_from("<Q", cubin, 40)[0], *struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + i * entry) for i in range(count)]
    strings = sections[names][4]
    registers = stack = 0
    for section in sections:
        start = strings + section[0]
        name = cubin[start : cubin.index(b"\0", start)].decode()
        if name == ".nv.info":
            at, end = section[4], section[4] + section[5]
            while at + 4 <= end:
                form, kind, size = struct.unpack_from("<BBH", cubin, at)
                value = struct.unpack_from("<II", cubin, at + 4)[1] if form == 4 and size == 8 else 0
                if kind == 0x2F:  # EIATTR_REGCOUNT: symbol, count
                    registers = max(registers, value)
                elif kind == 0x11:  # EIATTR_FRAME_SIZE: symbol, bytes
                    stack = max(stack, value)
                at += 4 + (size if form == 4 else 0)
    return registers, stack


def _jit(fn: Any, function: Function) -> Any:
    """Triton's kernel object, if Triton reads the very text that was checked."""
    kernel = JITFunction(fn)
    if kernel.src != canonical(function).text:
        raise KernelRejected("Triton reads this kernel's text in another way than Python does", function.line)
    return kernel


class Compiler:
    """Compiles a Program's launches. Reads binaries in `directory`, never writes there; collects new ones in `binaries`."""

    def __init__(self, program: Program, profile: DeviceProfile, directory: Path) -> None:
        self.program = program
        self.profile = profile
        self.directory = directory
        self.binaries: dict[str, bytes] = {}
        self._done: dict[str, Compiled | CompileFailed] = {}
        self._kernels = KernelSet(program, _jit)

    def compile(self, launch: Launch, config: Config, args: dict[str, Any]) -> Compiled:
        """The same binary is made once. Raises CompileFailed, KernelRejected or MachineLacks."""
        function = self.program.functions[launch.function]
        sig = signature(function, config, args)
        key = cache_key(self.program, launch, config, sig, self.profile)
        if key not in self._done:
            kept = read(self.directory, key)
            try:
                self._done[key] = kept[0] if kept is not None else self._make(key, launch, function, sig, config)
            except CompileFailed as error:
                self._done[key] = error
        done = self._done[key]
        if isinstance(done, CompileFailed):
            raise done
        return done

    def _make(self, key: str, launch: Launch, function: Function, sig: Signature, config: Config) -> Compiled:
        kernel = self._build(launch, function, sig, config)
        cubin, ttir, metadata = kernel.asm["cubin"], kernel.asm["ttir"], kernel.metadata
        registers, spills = resources(cubin)
        shared = int(metadata.shared)
        if shared > self.profile.shared_bytes:
            needed = f"{shared} bytes of shared memory, the GPU has {self.profile.shared_bytes}"
            raise CompileFailed(f"kernel {function.name} needs {needed}", passed_over=True)
        if (threads := 32 * int(metadata.num_warps)) > MAX_THREADS:  # ptxas takes it, and the driver does not
            needed = f"{threads} threads per program, the GPU has {MAX_THREADS}"
            raise CompileFailed(f"kernel {function.name} needs {needed}", passed_over=True)
        self.binaries[key] = cubin
        touched = touched_arguments(ttir)
        return Compiled(
            key, function.name, touched.stores, registers, spills, shared, int(metadata.num_warps),
            int(metadata.num_ctas), "inputPrecision = tf32" in ttir, str(metadata.name), int(metadata.global_scratch_size),
            int(metadata.global_scratch_align), int(metadata.profile_scratch_size),
            tuple((name, kind) for name, kind in sig.types.items() if kind != "constexpr"),
            tuple(metadata.tensordesc_meta or ()), touched.loads,
        )  # fmt: skip

    def _build(self, launch: Launch, function: Function, sig: Signature, config: Config) -> Any:
        jit = self._kernels.get(launch.function)
        kernel = canonical(function)
        names = list(canonical(function).parameters)
        constants = {(names.index(n),): self._constant(v) for n, v in sig.constants.items()}
        attrs = {(names.index(n),): [["tt.divisibility", 16]] for n in sig.divisible}
        source = BoundedSource(jit, sig.types, constants, attrs)
        source.warps = max(1, config.options.get("num_warps", source.warps))
        written = Written()
        try:
            with bounded(), linked_in_pieces(), written_once() as written:
                return triton.compile(source, target=GPUTarget("cuda", self.profile.arch, 32), options=dict(config.options))
        except CompilationError as error:
            line = kernel.lines.get(int(getattr(error.node, "lineno", 1) or 1), function.line)
            asserted = isinstance(error, CompileTimeAssertionFailure)
            raise CompileFailed(f"line {line}: {first_line(error)}", passed_over=asserted) from error
        except TooMuch as error:  # a bound of ours
            raise CompileFailed(f"kernel {function.name}: {error}", passed_over=True) from error
        except Exception as error:  # what the compiler raises is the candidate's failure, if the machine has no part in it
            check_machine(error, written)
            refused = isinstance(error, PTXASError)
            raise CompileFailed(f"kernel {function.name}: {one_line(error)}", passed_over=refused) from error
        finally:
            charge_children()  # ptxas

    def _constant(self, value: Value) -> Any:
        return binding_value(value, self._kernels.get)


@dataclass(frozen=True, slots=True)
class Compilation:
    """What `compile_program` made."""

    kernels: dict[str, dict[int, Compiled]]
    """Step ("3" in forward, "init:0" in `Program.once`) -> index of its launch's config -> facts."""
    binaries: dict[str, bytes]
    """Key -> cubin, of what the cache did not have."""


def compile_program(
    program: Program, specs: tuple[list[torch.Tensor], list[torch.Tensor]], profile: DeviceProfile, directory: Path,
    configs: Mapping[int, Sequence[int]] | Literal["all"],
) -> Compilation:  # fmt: skip
    """Compile every launch. `specs`: meta tensors for init_inputs and inputs. `configs`: forward step -> its configs in the
    order in which to try them (as they come by default), of which the first that compiles is taken, as Triton's autotuner
    passes over the others; or "all": up to MAX_CONFIGS of every launch, without those that fail where another one works. A
    launch for which another one chooses is compiled in the configurations that compile for that one.

    Raises CompileFailed (of the first config where none works), OutsideStorage, MalformedProgram, StepFailed, MachineLacks.
    """
    compiler = Compiler(program, profile, directory)
    found: dict[int, dict[int, Compiled]] = {}
    orders = _orders(program, {} if configs == "all" else configs or {})
    choosers = {id(program.forward[i]): id(program.forward[first]) for i, first in program.choosers.items() if i != first}

    def one(step: Launch, config: Config, args: dict[str, Any]) -> Compiled:
        try:
            return compiler.compile(step, config, args)
        except KernelRejected as error:
            where = error.line or program.functions[step.function].line
            raise CompileFailed(f"line {where}: {error}", passed_over=True) from error  # a rule of ours

    def launch(step: Launch, config: Config, args: dict[str, Any]) -> None:
        _check_extents(step, args)

        def compile_one(config: Config) -> Compiled:
            return one(step, config, {**args, **config.args})

        if id(step) in choosers:
            found[id(step)] = _all_that_compile(step, list(found[choosers[id(step)]]), compile_one, chooses=False)
            return
        order = orders.get(id(step), range(min(len(step.configs), MAX_CONFIGS)))
        found[id(step)] = _alternatives(step, order, configs == "all", compile_one)

    replay = Replay(program, torch.device("meta"), launch)
    replay.init(specs[0], 0)
    replay.prepare(specs[1], 0)
    replay.forward(specs[1], 0)
    kernels = {f"init:{i}": found[id(step)] for i, step in enumerate(program.once) if isinstance(step, Launch)}
    kernels |= {str(i): found[id(step)] for i, step in enumerate(program.forward) if isinstance(step, Launch)}
    return Compilation(kernels, compiler.binaries)


def _check_extents(step: Launch, args: dict[str, Any]) -> None:
    """The GPU checks a descriptor's accesses against the shape that it claims, so that must lie in the tensor's memory."""
    for name, value in args.items():
        if isinstance(value, Descriptor):
            item = value.base.element_size()
            there = value.base.untyped_storage().nbytes() // item - value.base.storage_offset()
            if value.extent > there:
                raise OutsideStorage(
                    f"line {step.line}: tensor descriptor {name} spans {value.extent} elements, its tensor has {there}"
                )


def _orders(program: Program, configs: Mapping[int, Sequence[int]]) -> dict[int, Sequence[int]]:
    """Identity of a launch -> its configs in the order in which to try them. Raises MalformedProgram."""
    found: dict[int, Sequence[int]] = {}
    for index, order in configs.items():
        step = program.forward[index] if 0 <= index < len(program.forward) else None
        if not isinstance(step, Launch) or not order or any(not 0 <= i < len(step.configs) for i in order):
            raise MalformedProgram(f"configurations for step {index}, which has none")
        found[id(step)] = order
    return found


def _alternatives(
    step: Launch, order: Sequence[int], every: bool, compile_one: Callable[[Config], Compiled]
) -> dict[int, Compiled]:
    """The configs of one launch that compile, of equal binaries that are launched alike the first; or, unless
    `every`, the first alone.

    Raises the first's CompileFailed.
    """
    made = _all_that_compile(step, order, compile_one, most=len(order) if every else 1)
    seen: list[tuple[Any, ...]] = []
    for index, compiled in list(made.items()):
        config = step.configs[index]
        launched = (compiled.key, config.grid, config.args, config.before)
        if launched in seen:
            del made[index]
        seen.append(launched)
    return made


def _all_that_compile(
    step: Launch, order: Sequence[int], compile_one: Callable[[Config], Compiled], most: int = MAX_CONFIGS, *,
    chooses: bool = True,
) -> dict[int, Compiled]:  # fmt: skip
    """The first `most` configs of one launch that compile. Raises the first's CompileFailed where none does, and, of a launch
    that `chooses`, one that ends Triton's autotuner: it passes over what needs too much, asserts otherwise, or is refused by
    ptxas, and nothing else."""
    made: dict[int, Compiled] = {}
    first: CompileFailed | None = None
    for index in order:
        if len(made) == most:
            break
        try:
            made[index] = compile_one(step.configs[index])
        except CompileFailed as error:
            if chooses and not error.passed_over:
                raise
            first = first or error
    if not made and first is not None:
        raise first
    return made
