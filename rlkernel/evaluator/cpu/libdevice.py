"""What CUDA's libdevice computes, by numpy and torch, for the CPU runner, as NVIDIA's libdevice user guide says.

Directed rounding (`_rd`, `_ru`, `_rz`) is rounding to nearest here: it differs by one unit in the last place.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Array = Any
"""A numpy array of a kernel's values."""


def _special(function: Callable[..., torch.Tensor]) -> Callable[..., Array]:
    """A function of torch, on arrays, in double precision."""

    def call(*arrays: Array) -> Array:
        return function(*[torch.from_numpy(np.atleast_1d(np.asarray(a, dtype=np.float64))) for a in arrays]).numpy()

    return call


def _each(function: Callable[..., Any], kind: type = float) -> Callable[..., Array]:
    """A function of Python numbers, on arrays."""
    return np.vectorize(function, otypes=[np.float64 if kind is float else np.int64])


def _gamma(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


def _away(x: Array) -> Array:
    """Rounding to nearest, halves away from zero, as C's `round` does."""
    whole = np.trunc(np.abs(x))  # x + 0.5 would round
    return np.copysign(whole + (np.abs(x) - whole >= 0.5).astype(x.dtype), x)


def fused(x: Array, y: Array, z: Array) -> Array:
    """x * y + z with one rounding, where float64 holds the product."""
    if x.dtype.kind != "f":
        return np.asarray(x * y + z)
    wide = x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)
    return np.asarray(wide.astype(z.dtype))


def _unsigned(x: Array) -> Array:
    return np.asarray(x).view(f"u{np.asarray(x).dtype.itemsize}")


def _bits(x: Array) -> int:
    return 8 * int(np.asarray(x).dtype.itemsize)


def _reverse(x: Array) -> Array:
    width = _bits(x)
    return _each(lambda v: int(f"{int(v) & (1 << width) - 1:0{width}b}"[::-1], 2), int)(_unsigned(x)).astype(f"u{width // 8}")


def _leading(x: Array) -> Array:
    return _each(lambda v: _bits(x) - int(v).bit_length(), int)(_unsigned(x))


def _first_set(x: Array) -> Array:
    return _each(lambda v: (int(v) & -int(v)).bit_length(), int)(_unsigned(x))


def _population(x: Array) -> Array:
    return _each(lambda v: int(v).bit_count(), int)(_unsigned(x))


def _high(x: Array, y: Array) -> Array:
    return np.vectorize(lambda a, b: (int(a) * int(b)) >> _bits(x), otypes=[object])(x, y).astype(np.asarray(x).dtype)


def _mul24(x: Array, y: Array, *, signed: bool) -> Array:
    def low(v: int) -> int:
        v &= (1 << 24) - 1
        return v - (1 << 24) if signed and v >> 23 else v

    product = np.vectorize(lambda a, b: (low(int(a)) * low(int(b))) & 0xFFFFFFFF, otypes=[np.int64])(x, y)
    return product.astype(np.uint32).view(np.int32 if signed else np.uint32)


def _permute(x: Array, y: Array, selector: Array) -> Array:
    def one(a: int, b: int, s: int) -> int:
        whole = (int(b) & 0xFFFFFFFF) << 32 | (int(a) & 0xFFFFFFFF)
        return sum((whole >> 8 * (int(s) >> 4 * place & 7) & 255) << 8 * place for place in range(4))

    return _each(one, int)(x, y, selector).astype(np.uint32).view(np.int32)


def _bessel(order_n: Array, x: Array, *, first: bool) -> Array:
    """Bessel functions of integer order, by the upward recurrence (Abramowitz and Stegun 9.1.27) from orders 0 and 1."""
    zero = torch.special.bessel_j0 if first else torch.special.bessel_y0
    one = torch.special.bessel_j1 if first else torch.special.bessel_y1
    before: Array = _special(zero)(x)
    now: Array = _special(one)(x)
    orders = np.broadcast_to(order_n, np.shape(now))
    result: Array = np.where(orders == 0, before, now)
    for order in range(1, int(np.max(orders, initial=0))):
        before, now = now, 2 * order / x * now - before
        result = np.where(orders == order + 1, now, result)
    return result


def _logb(x: Array) -> Array:
    return np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, np.frexp(x)[1] - 1.0))


def _norm(*parts: Array) -> Array:
    return np.sqrt(sum(np.square(part) for part in parts))


def _limited(x: Array) -> Array:
    return np.nan_to_num(np.clip(x, 0.0, 1.0), nan=0.0)


_ERF, _ERFC = _special(torch.special.erf), _special(torch.special.erfc)
_FLOATS: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "fabs": np.abs, "llabs": np.abs, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint,
    "nearbyint": np.rint, "round": _away, "llrint": np.rint, "llround": _away, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "cbrt": np.cbrt, "rcbrt": lambda x: 1 / np.cbrt(x), "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x),
    "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "logb": _logb, "ilogb": _logb,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)), "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "atan2": np.arctan2, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "pow": np.power, "powi": np.power, "fmod": np.fmod, "remainder": lambda x, y: x - y * np.rint(x / y),
    "fmax": np.fmax, "fmin": np.fmin, "fdim": lambda x, y: np.where(x > y, x - y, 0.0), "hypot": np.hypot,
    "rhypot": lambda x, y: 1 / np.hypot(x, y), "norm3d": _norm, "norm4d": _norm, "rnorm3d": lambda *x: 1 / _norm(*x),
    "rnorm4d": lambda *x: 1 / _norm(*x), "copysign": np.copysign, "nextafter": np.nextafter, "ldexp": np.ldexp,
    "scalbn": np.ldexp,
    "saturate": _limited, "erf": _ERF, "erfc": _ERFC, "erfinv": _special(torch.special.erfinv),
    "erfcinv": _special(lambda x: torch.special.erfinv(1 - x)), "erfcx": _special(torch.special.erfcx),
    "normcdf": _special(torch.special.ndtr), "normcdfinv": _special(torch.special.ndtri), "lgamma": _special(torch.lgamma),
    "tgamma": _each(_gamma), "cyl_bessel_i0": _special(torch.special.i0), "cyl_bessel_i1": _special(torch.special.i1),
    "j0": _special(torch.special.bessel_j0), "j1": _special(torch.special.bessel_j1),
    "y0": _special(torch.special.bessel_y0), "y1": _special(torch.special.bessel_y1),
    "jn": functools.partial(_bessel, first=True), "yn": functools.partial(_bessel, first=False),
    "fma": fused, "isnan": np.isnan, "isinf": np.isinf, "finite": np.isfinite, "isfinite": np.isfinite,
    "signbit": np.signbit,
}  # fmt: skip
"""Functions of floats. A name that is not here is one of these with `f` for float32, `d` for float64 or `fast_` around it."""
_ARITHMETIC: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rcp": lambda x: 1 / x, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "ma": fused, "divide": np.divide,
}  # fmt: skip
_INTEGERS: dict[str, Callable[..., Array]] = {
    "brev": _reverse, "brevll": _reverse, "clz": _leading, "clzll": _leading, "ffs": _first_set, "ffsll": _first_set,
    "popc": _population, "popcll": _population, "byte_perm": _permute, "mulhi": _high, "umulhi": _high, "mul64hi": _high,
    "umul64hi": _high, "mul24": functools.partial(_mul24, signed=True), "umul24": functools.partial(_mul24, signed=False),
    "hadd": lambda x, y: (x.astype(np.int64) + y) >> 1, "uhadd": lambda x, y: (x.astype(np.uint64) + y) >> 1,
    "rhadd": lambda x, y: (x.astype(np.int64) + y + 1) >> 1, "urhadd": lambda x, y: (x.astype(np.uint64) + y + 1) >> 1,
    "sad": lambda x, y, z: np.abs(x.astype(np.int64) - y) + z, "usad": lambda x, y, z: np.abs(x.astype(np.int64) - y) + z,
    "float_as_int": lambda x: x.view(np.int32), "float_as_uint": lambda x: x.view(np.uint32),
    "int_as_float": lambda x: x.view(np.float32), "uint_as_float": lambda x: x.view(np.float32),
    "double_as_longlong": lambda x: x.view(np.int64), "longlong_as_double": lambda x: x.view(np.float64),
    "double2hiint": lambda x: (x.view(np.int64) >> 32).astype(np.int32),
    "double2loint": lambda x: x.view(np.int64).astype(np.int32),
    "hiloint2double": lambda high, low: (high.astype(np.int64) << 32 | low.view(np.uint32)).view(np.float64),
    "rcp64h": lambda x: 1 / x,
}  # fmt: skip
_ROUNDED = re.compile(r"(?:d|f)?(add|sub|mul|div|rcp|sqrt|rsqrt|ma)f?_r[nzud]")
_CONVERTED = re.compile(r"(float|double|u?int|u?ll)2(float|double|u?int|u?ll)_r([nzud])")
_ROUNDINGS: dict[str, Callable[..., Array]] = {"n": np.rint, "z": np.trunc, "u": np.ceil, "d": np.floor}
_WHOLE: dict[str, Any] = {
    "int": np.iinfo(np.int32), "uint": np.iinfo(np.uint32), "ll": np.iinfo(np.int64), "ull": np.iinfo(np.uint64),
}  # fmt: skip


def function(symbol: str) -> Callable[..., Array] | None:
    """What `__nv_...` computes, on arrays; None for what is no function of libdevice."""
    name = symbol.removeprefix("__nv_")
    if name in _INTEGERS:
        return _INTEGERS[name]
    rounded, converted = _ROUNDED.fullmatch(name), _CONVERTED.fullmatch(name)
    if rounded:
        return _ARITHMETIC[rounded.group(1)]
    if converted:
        return _conversion(converted.group(2), _ROUNDINGS[converted.group(3)])
    plain = name.removeprefix("fast_")
    if plain == "fdividef":
        return np.divide
    for guess in (plain, plain.removesuffix("f"), plain.removesuffix("d")):
        if guess in _FLOATS:
            return _FLOATS[guess]
    return None


def _conversion(target: str, rounding: Callable[..., Array]) -> Callable[..., Array]:
    """A conversion between numbers; integers saturate, and what is no number becomes 0."""
    limits = _WHOLE.get(target)
    if limits is None:
        return lambda x: x

    def convert(x: Array) -> Array:
        whole = np.nan_to_num(rounding(x).astype(np.float64), nan=0.0)
        inside = np.where((whole >= float(limits.min)) & (whole < float(limits.max)), whole, 0.0).astype(limits.dtype)
        return np.where(whole >= float(limits.max), limits.max, np.where(whole < float(limits.min), limits.min, inside))

    return convert
