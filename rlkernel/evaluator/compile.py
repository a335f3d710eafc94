"""From a Program's launches to GPU binaries, on the trusted side, for a named target. Needs no GPU.

Runs in a forked child of its own, because LLVM and ptxas crash and hang on some inputs. Results are kept on disk, keyed by
everything that goes into a binary.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.kernel_source import KernelRejected, KernelSet, binding_value, canonical
from rlkernel.evaluator.program import Config, Function, Launch, Program, Value, decode_scalar
from rlkernel.evaluator.replay import Replay
from rlkernel.evaluator.ttir import stored_arguments

_POINTERS = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "i1", "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
}  # fmt: skip


class CompileFailed(Exception):
    """Triton or ptxas refuses the kernel. `detail` is for the model."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Compiled:
    """Facts about one binary; its bytes lie in the cache under `key`."""

    key: str
    name: str
    stores: tuple[str, ...]
    """Pointer parameters that the TTIR stores to."""
    registers: int
    """Per thread."""
    spills: int
    """Bytes of stack per thread."""
    shared_bytes: int
    num_warps: int
    tf32: bool
    """Whether a float32 dot uses the tf32 matrix units."""
    from_cache: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """How one launch specialises its kernel."""

    types: dict[str, str]
    constants: dict[str, Value]
    divisible: tuple[str, ...]
    """Arguments divisible by 16: addresses and integers."""


def signature(function: Function, config: Config, args: dict[str, Any]) -> Signature:
    """Triton's own rules: constants; integers equal to 1; types; divisibility by 16 of addresses and integers."""
    types: dict[str, str] = {}
    constants = dict(config.constants)
    divisible: list[str] = []
    for name, annotation in canonical(function).parameters.items():
        value = args.get(name)
        free = name not in function.do_not_specialize
        if name in constants or name not in args:
            types[name] = "constexpr"
        elif isinstance(value, torch.Tensor):
            dtype = str(value.dtype).removeprefix("torch.")
            if dtype not in _POINTERS:
                raise CompileFailed(f"line {function.line}: kernel argument {name} has dtype {dtype}, which Triton lacks")
            types[name] = "*" + _POINTERS[dtype]
            if free and value.storage_offset() * value.element_size() % 16 == 0:
                divisible.append(name)
        elif isinstance(value, bool):
            types[name] = "u1"
        elif isinstance(value, int):
            if value == 1 and free:
                types[name] = "constexpr"
                constants[name] = 1
                continue
            types[name] = "i32" if -(2**31) <= value < 2**31 else "u64" if value >= 2**63 else "i64"
            if free and value % 16 == 0:
                divisible.append(name)
        elif isinstance(value, float):
            types[name] = "fp32"
        else:
            raise CompileFailed(f"line {function.line}: kernel argument {name} is neither a tensor nor a number")
        if "int64" in annotation and types[name] == "i32":
            types[name] = "i64"
    return Signature(types, constants, tuple(divisible))


def cache_key(program: Program, launch: Launch, config: Config, sig: Signature, profile: DeviceProfile) -> str:
    functions = [[f.name, f.source, f.line, f.bindings, f.do_not_specialize] for f in program.functions]
    parts = [functions, launch.function, asdict(sig), config.options, profile.arch, triton.__version__]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


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
    """Compiles a Program's launches; `directory` holds `<key>.json` and `<key>.cubin`."""

    def __init__(self, program: Program, profile: DeviceProfile, directory: Path) -> None:
        self.program = program
        self.profile = profile
        self.directory = directory
        self._kernels = KernelSet(program, _jit)

    def compile(self, launch: Launch, config: Config, args: dict[str, Any]) -> Compiled:
        """Raises CompileFailed or KernelRejected."""
        function = self.program.functions[launch.function]
        sig = signature(function, config, args)
        key = cache_key(self.program, launch, config, sig, self.profile)
        stored = self.directory / f"{key}.json"
        if stored.exists():
            facts = json.loads(stored.read_text())
            return Compiled(**{**facts, "stores": tuple(facts["stores"]), "from_cache": True})
        kernel = self._build(launch, function, sig, config)
        registers, spills = resources(kernel.asm["cubin"])
        shared = int(kernel.metadata.shared)
        if shared > self.profile.shared_bytes:
            raise CompileFailed(
                f"kernel {function.name} needs {shared} bytes of shared memory, the GPU has {self.profile.shared_bytes}"
            )
        ttir = kernel.asm["ttir"]
        facts = Compiled(
            key, function.name, tuple(sorted(stored_arguments(ttir))), registers, spills, shared, int(kernel.metadata.num_warps),
            "inputPrecision = tf32" in ttir,
        )  # fmt: skip
        self._keep(facts, kernel.asm["cubin"])
        return facts

    def _build(self, launch: Launch, function: Function, sig: Signature, config: Config) -> Any:
        jit = self._kernels.get(launch.function)
        kernel = canonical(function)
        names = list(canonical(function).parameters)
        constants = {(names.index(n),): self._constant(v) for n, v in sig.constants.items()}
        attrs = {(names.index(n),): [["tt.divisibility", 16]] for n in sig.divisible}
        source = ASTSource(jit, sig.types, constants, attrs)
        try:
            return triton.compile(source, target=GPUTarget("cuda", self.profile.arch, 32), options=dict(config.options))
        except CompilationError as error:
            line = kernel.lines.get(int(getattr(error.node, "lineno", 1) or 1), function.line)
            raise CompileFailed(f"line {line}: {_first_line(error)}") from error
        except Exception as error:  # whatever the compiler raises on this kernel is the candidate's failure
            raise CompileFailed(
                f"kernel {function.name}: {type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"
            ) from error

    def _constant(self, value: Value) -> Any:
        if isinstance(value, dict) and "function" in value:
            return self._kernels.get(int(value["function"]))
        if isinstance(value, dict) and ("tl_dtype" in value or "triton" in value):
            return binding_value(value, self._kernels.get)
        return decode_scalar(value)

    def _keep(self, facts: Compiled, cubin: bytes) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        for suffix, data in ((".cubin", cubin), (".json", json.dumps(asdict(facts)).encode())):
            temporary = self.directory / f".{facts.key}{suffix}.{os.getpid()}"
            temporary.write_bytes(data)
            temporary.rename(self.directory / f"{facts.key}{suffix}")


def _first_line(error: CompilationError) -> str:
    """The compiler's message without the source excerpt that it repeats."""
    cause: BaseException = error
    while isinstance(cause, CompilationError) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = cause.error_message if isinstance(cause, CompilationError) else f"{type(cause).__name__}: {cause}"
    if text and text.startswith("NameError("):
        text = "NameError: " + text[len("NameError('") :]
    lines = (text or str(cause)).strip().splitlines()
    return lines[0][:250] if lines else type(cause).__name__


def compile_program(
    program: Program, specs: tuple[list[torch.Tensor], list[torch.Tensor]], profile: DeviceProfile, directory: Path,
    choices: dict[int, int],
) -> dict[int, Compiled]:  # fmt: skip
    """Compile every launch of `forward` in the chosen config. `specs`: meta tensors for init_inputs and inputs.

    Returns forward step index -> facts. Raises CompileFailed, KernelRejected, MalformedProgram, StepFailed.
    """
    compiler = Compiler(program, profile, directory)
    found: dict[int, Compiled] = {}
    pending: list[Compiled] = []

    def launch(step: Launch, config: Config, args: dict[str, Any]) -> None:
        try:
            pending.append(compiler.compile(step, config, args))
        except KernelRejected as error:
            where = error.line or program.functions[step.function].line
            raise CompileFailed(f"line {where}: {error}") from error

    replay = Replay(program, torch.device("meta"), launch, configs=choices)
    replay.init(specs[0], 0)
    replay.forward(specs[1], 0, observe=lambda index, step, read, made: found.update({index: pending.pop()}) if pending else None)
    return found
