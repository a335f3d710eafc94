"""CUDA's math library (`libdevice`) on numpy arrays, for kernels that the CPU runner interprets.

A function is found by its symbol without the prefix `__nv_` and without the suffix `f` of its float32 form; what is not in the
table is refused by name. Values are computed in float64 where numpy lacks the function, and rounded to the result's type.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Array = np.ndarray[Any, Any]


def _by_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Array], Array]:
    return lambda x: np.asarray(function(torch.from_numpy(np.array(x, dtype=np.float64))).numpy())


def _by_element(function: Callable[..., float]) -> Callable[..., Any]:
    return np.vectorize(function, otypes=[np.float64])


def _round_away(x: Array) -> Array:
    """To the nearest integer, halves away from zero: C's `round`, where numpy's goes to the even one."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _fused(x: Array, y: Array, z: Array) -> Array:
    """x * y + z with one rounding."""
    return np.asarray(x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64))


def _erfcx(x: Array) -> Array:
    return np.asarray(torch.special.erfcx(torch.from_numpy(np.array(x, dtype=np.float64))).numpy())


def _popcount(x: Array) -> Any:
    return _by_element(lambda value: bin(int(value) & ((1 << (8 * x.itemsize)) - 1)).count("1"))(x)


def _leading_zeros(x: Array) -> Any:
    bits = 8 * x.itemsize
    return _by_element(lambda value: bits - (int(value) & ((1 << bits) - 1)).bit_length())(x)


def _first_set(x: Array) -> Any:
    return _by_element(lambda value: (int(value) & -int(value)).bit_length())(x)


def _high_half(x: Array, y: Array) -> Array:
    bits = 8 * x.itemsize
    product = np.array(x, dtype=object) * np.array(y, dtype=object)
    return np.asarray((product >> bits).astype(x.dtype))


def _scaled(x: Array, n: Array) -> Array:
    return np.ldexp(x.astype(np.float64), n.astype(np.int64))


TABLE: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh, "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x.astype(np.float64)), "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log1p": np.log1p, "log10": np.log10, "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "ilogb": lambda x: np.floor(np.log2(np.abs(x))), "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt,
    "rcbrt": lambda x: 1 / np.cbrt(x), "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinpi": lambda x: np.sin(np.pi * x),
    "cospi": lambda x: np.cos(np.pi * x), "pow": np.power, "powi": np.power, "fabs": np.abs, "abs": np.abs, "llabs": np.abs,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "nearbyint": np.rint, "round": _round_away,
    "llround": _round_away, "llrint": np.rint, "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "atan2": np.arctan2, "fmod": np.fmod, "remainder": _by_element(math.remainder), "fmax": np.fmax,
    "fmin": np.fmin, "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0)),
    "hypot": np.hypot, "rhypot": lambda x, y: 1 / np.hypot(x, y), "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z), "rnorm3d": lambda x, y, z: 1 / np.sqrt(x * x + y * y + z * z),
    "norm4d": lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w),
    "rnorm4d": lambda x, y, z, w: 1 / np.sqrt(x * x + y * y + z * z + w * w), "copysign": np.copysign, "nextafter": np.nextafter,
    "ldexp": _scaled, "scalbn": _scaled, "saturate": lambda x: np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0)),
    "erf": _by_torch(torch.special.erf), "erfc": _by_torch(torch.special.erfc), "erfinv": _by_torch(torch.special.erfinv),
    "erfcinv": lambda x: _by_torch(torch.special.erfinv)(1.0 - x.astype(np.float64)), "erfcx": _erfcx,
    "normcdf": _by_torch(torch.special.ndtr), "normcdfinv": _by_torch(torch.special.ndtri),
    "lgamma": _by_torch(torch.special.gammaln), "tgamma": _by_element(lambda x: math.gamma(x) if x > 0 or x % 1 else math.nan),
    "j0": _by_torch(torch.special.bessel_j0), "j1": _by_torch(torch.special.bessel_j1), "y0": _by_torch(torch.special.bessel_y0),
    "y1": _by_torch(torch.special.bessel_y1), "cyl_bessel_i0": _by_torch(torch.special.i0),
    "cyl_bessel_i1": _by_torch(torch.special.i1), "fma": _fused, "fdividef": np.divide, "isnan": np.isnan, "isinf": np.isinf,
    "finite": np.isfinite, "isfinite": np.isfinite, "signbit": np.signbit, "float_as_int": lambda x: x.view(np.int32),
    "float_as_uint": lambda x: x.view(np.uint32), "int_as_float": lambda x: x.astype(np.int32).view(np.float32),
    "uint_as_float": lambda x: x.astype(np.uint32).view(np.float32), "double_as_longlong": lambda x: x.view(np.int64),
    "longlong_as_double": lambda x: x.view(np.float64), "popc": _popcount, "popcll": _popcount, "clz": _leading_zeros,
    "clzll": _leading_zeros, "ffs": _first_set, "ffsll": _first_set, "mulhi": _high_half, "umulhi": _high_half,
    "mul64hi": _high_half, "umul64hi": _high_half,
}  # fmt: skip
_ROUNDED: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "rcp": lambda x: 1 / x, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "fma": _fused,
}  # fmt: skip
"""Operations with a rounding mode in their name; only rounding to nearest (`_rn`) is numpy's."""


def find(symbol: str) -> Callable[..., Any] | None:
    """The function that `__nv_<symbol>` names, or None."""
    name = symbol.removeprefix("__nv_")
    if name.endswith("_rn"):
        stem = name.removesuffix("_rn")
        if "2" in stem:  # `float2int_rn`, `int2float_rn`: a conversion, to the nearest even
            return np.rint if stem.partition("2")[2] in ("int", "uint", "ll", "ull") else np.positive
        return next((_ROUNDED[s] for s in (stem, stem[1:], stem.removesuffix("f")) if s in _ROUNDED), None)
    if name.endswith("_rz") and name.partition("2")[2].removesuffix("_rz") in ("int", "uint", "ll", "ull"):
        return np.trunc
    name = name.removeprefix("fast_")
    return next((TABLE[n] for n in (name, name.removesuffix("f"), name.removesuffix("d")) if n in TABLE), None)
