"""The values in a Program: what stands for a tensor, a dtype or a function has a type of its own, so that no dict, name or
string of a candidate can be taken for it. JSON knows no types: there each is an object with one key, read by `decode` alone.

    None, bool, int, str, finite floats, lists    themselves
    other floats                                  {"float": "inf" | "-inf" | "nan"}
    complex numbers                               {"complex": [real, imaginary]}
    TensorRef(7)                                  {"t": 7}
    ScalarRef(2)                                  {"s": 2}
    TorchName("dtype", "float32")                 {"dtype": "float32"}, and likewise "layout" and "memory_format"
    DeviceRef()                                   {"device": true}
    Pairs((("a", 1),))                            {"dict": [["a", 1]]}: a dict that `forward` returned
    Descriptor                                    {"descriptor": {"base", "shape", "strides", "block_shape", "padding"}}
    FunctionRef(2)                                {"function": 2}
    ModuleRef("triton.language")                  {"module": "triton.language"}
    LibraryRef("triton.language", "load")         {"triton": ["triton.language", "load"]}
    TlDtype("fp32")                               {"tl_dtype": "fp32"}
    Constexpr(8)                                  {"constexpr": 8}
    Unknown()                                     {"unknown": true}: no kernel can use it
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

Value = Any
"""One of the above."""
MAX_ID = 1 << 24


class MalformedProgram(Exception):
    """The tracer child's message is not a Program. The candidate's fault: its process wrote it."""


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor, by the number that an input, a literal or a step has bound."""

    number: int


@dataclass(frozen=True, slots=True)
class ScalarRef:
    """A number of the host that is read from the weights, by the number of its `Scalar` step."""

    number: int


@dataclass(frozen=True, slots=True)
class TorchName:
    """A constant of torch: a dtype, a layout or a memory format."""

    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class DeviceRef:
    """The device that the Program is replayed on."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """A dict that `forward` returned, in its order."""

    items: tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True)
class FunctionRef:
    """A `@triton.jit` function of the same Program, by its index."""

    index: int


@dataclass(frozen=True, slots=True)
class ModuleRef:
    """A module that a kernel names."""

    name: str


@dataclass(frozen=True, slots=True)
class LibraryRef:
    """A member of Triton's language that a kernel names without its module."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class TlDtype:
    """A dtype of Triton's language, by its short name."""

    name: str


@dataclass(frozen=True, slots=True)
class Constexpr:
    """A global constant that a kernel may use."""

    value: Value


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that a kernel names and cannot use."""


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A host-side tensor descriptor as a launch's argument: a window on `base`, in elements from its first one."""

    base: Any
    """The tensor; a TensorRef in a Program."""
    shape: tuple[int, ...]
    """Elements outside are read as zero (or NaN) and are not written."""
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    """What one load or store moves; `Config.blocks` overrides it."""
    padding: str = "zero"

    @property
    def extent(self) -> int:
        """Elements from the base's first one to the last one that the descriptor can reach."""
        return 1 + sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))


def require(condition: bool, message: str) -> None:
    """Raises MalformedProgram unless `condition` holds."""
    if not condition:
        raise MalformedProgram(message)


def is_int(value: object, low: int, high: int) -> bool:
    """Whether `value` is an integer from `low` to `high`, and no bool."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def encode(value: Value) -> Any:
    """A value as JSON. Raises TypeError for anything else."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, complex):
        return {"complex": [encode(value.real), encode(value.imag)]}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    match value:
        case TensorRef(number):
            return {"t": number}
        case ScalarRef(number):
            return {"s": number}
        case TorchName(kind, name):
            return {kind: name}
        case DeviceRef():
            return {"device": True}
        case Pairs(items):
            return {"dict": [[key, encode(item)] for key, item in items]}
        case FunctionRef(index):
            return {"function": index}
        case ModuleRef(name):
            return {"module": name}
        case LibraryRef(module, name):
            return {"triton": [module, name]}
        case TlDtype(name):
            return {"tl_dtype": name}
        case Constexpr(inner):
            return {"constexpr": encode(inner)}
        case Unknown():
            return {"unknown": True}
        case Descriptor(base, shape, strides, block, padding):
            sizes = {"shape": list(shape), "strides": list(strides), "block_shape": list(block)}
            return {"descriptor": {"base": encode(base), **sizes, "padding": padding}}
    raise TypeError(f"{type(value).__name__} is no value of a Program")


def decode(data: Any) -> Value:
    """A value from JSON. Raises MalformedProgram."""
    if data is None or isinstance(data, (bool, int, str, float)):
        return data
    if isinstance(data, list):
        return [decode(item) for item in data]
    require(isinstance(data, dict) and len(data) == 1, f"unknown value {str(data)[:80]}")
    ((tag, inner),) = data.items()
    require(tag in _DECODERS, f"unknown value {str(data)[:80]}")
    return _DECODERS[tag](inner)


def block(value: Any) -> tuple[int, ...]:
    """A block shape: up to 5 powers of two, of at most 2**20 elements (Triton's limit). Raises MalformedProgram."""
    require(isinstance(value, list) and 1 <= len(value) <= 5, "bad block shape")
    require(all(is_int(b, 1, 1 << 20) and b & (b - 1) == 0 for b in value), "bad block shape")
    require(math.prod(value) <= 1 << 20, "block too large")
    return tuple(value)


def _float(data: Any) -> float:
    require(data in ("inf", "-inf", "nan"), "bad float")
    return float(data)


def _complex(data: Any) -> complex:
    require(isinstance(data, list) and len(data) == 2, "bad complex number")
    parts = [decode(part) for part in data]
    require(all(isinstance(part, float) for part in parts), "bad complex number")
    return complex(*parts)


def _tensor(data: Any) -> TensorRef:
    require(is_int(data, 0, MAX_ID), "bad tensor")
    return TensorRef(data)


def _scalar(data: Any) -> ScalarRef:
    require(is_int(data, 0, MAX_ID), "bad scalar")
    return ScalarRef(data)


def _named(kind: Callable[[str], Value]) -> Callable[[Any], Value]:
    def decode_name(data: Any) -> Value:
        require(isinstance(data, str) and len(data) < 200, "bad name")
        return kind(data)

    return decode_name


def _flag(value: Value) -> Callable[[Any], Value]:
    def decode_flag(data: Any) -> Value:
        require(data is True, "bad flag")
        return value

    return decode_flag


def _pairs(data: Any) -> Pairs:
    good = isinstance(data, list) and all(isinstance(p, list) and len(p) == 2 and isinstance(p[0], str) for p in data)
    require(good, "bad dict")
    return Pairs(tuple((key, decode(item)) for key, item in data))


def _function(data: Any) -> FunctionRef:
    require(is_int(data, 0, 1 << 16), "bad function")
    return FunctionRef(data)


def _library(data: Any) -> LibraryRef:
    require(isinstance(data, list) and len(data) == 2 and all(isinstance(part, str) for part in data), "bad library name")
    return LibraryRef(*data)


def _descriptor(data: Any) -> Descriptor:
    require(isinstance(data, dict), "bad descriptor")
    base, window, shape, strides = (
        decode(data.get("base")),
        block(data.get("block_shape")),
        data.get("shape"),
        data.get("strides"),
    )
    require(isinstance(base, TensorRef), "a descriptor of what is no tensor")
    for sizes, low in ((shape, 1), (strides, 0)):
        require(isinstance(sizes, list) and len(sizes) == len(window), "bad descriptor")
        require(all(is_int(n, low, 1 << 40) for n in sizes), "bad descriptor")
    require(strides[-1] == 1 and all(size < 1 << 31 for size in shape), "bad descriptor")
    require(data.get("padding") in ("zero", "nan"), "bad descriptor padding")
    return Descriptor(base, tuple(shape), tuple(strides), window, data["padding"])


_DECODERS: dict[str, Callable[[Any], Value]] = {
    "float": _float, "complex": _complex, "t": _tensor, "s": _scalar, "dtype": _named(lambda name: TorchName("dtype", name)),
    "layout": _named(lambda name: TorchName("layout", name)),
    "memory_format": _named(lambda name: TorchName("memory_format", name)), "device": _flag(DeviceRef()), "dict": _pairs,
    "function": _function, "module": _named(ModuleRef), "triton": _library, "tl_dtype": _named(TlDtype),
    "constexpr": lambda data: Constexpr(decode(data)), "unknown": _flag(Unknown()), "descriptor": _descriptor,
}  # fmt: skip


def rewrite(value: Value, change: Callable[[Value], Value]) -> Value:
    """`value` with every reference in it replaced by what `change` returns for it. Plain values stay as they are."""
    if isinstance(value, (list, tuple)):
        return [rewrite(item, change) for item in value]
    if isinstance(value, Pairs):
        return Pairs(tuple((key, rewrite(item, change)) for key, item in value.items))
    if isinstance(value, Descriptor):
        return replace(value, base=rewrite(value.base, change))
    if isinstance(value, Constexpr):
        return Constexpr(rewrite(value.value, change))
    return change(value)
