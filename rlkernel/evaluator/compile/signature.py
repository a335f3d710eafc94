"""How the arguments of a launch specialise its kernel, by Triton's own rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.errors import lacking
from rlkernel.evaluator.program.kernel_text import canonical
from rlkernel.evaluator.program.schema import Config, Function, block_shape
from rlkernel.evaluator.program.values import Descriptor, Value

_POINTERS = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "float64": "fp64", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "i1", "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
}  # fmt: skip


class CompileFailed(Exception):
    """Triton or ptxas refuses the kernel. `detail` is for the model. passed_over: whether an autotuner goes on to its other
    configurations."""

    def __init__(self, detail: str, *, passed_over: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.passed_over = passed_over


class MachineLacks(Exception):
    """The machine, or its limits, does not let a kernel be compiled. The kernel has no part in it."""

    def __init__(self, number: int, path: str) -> None:
        super().__init__(str(lacking(number, path)))
        self.number = number
        self.path = path


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
        elif isinstance(value, Descriptor):
            dtype = str(value.base.dtype).removeprefix("torch.")
            if dtype not in _POINTERS or dtype == "bool":
                raise CompileFailed(f"line {function.line}: tensor descriptor {name} has dtype {dtype}, which Triton lacks")
            types[name] = f"tensordesc<{_POINTERS[dtype]}{list(block_shape(name, value, config))}>"
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
