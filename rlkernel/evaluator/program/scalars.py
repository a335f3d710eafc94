"""Arithmetic on numbers of the host that are read from weights, by name: `float(self.scale.item()) * 2` is "item", then "mul"."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

MAX_BITS = 4096
"""The largest whole number that arithmetic may reach, in bits: 9**9**9 has 369 million digits."""


class BadNumber(Exception):
    """The arithmetic has no result for the numbers that it is given, e.g. a division by zero."""


def item(tensor: torch.Tensor) -> float | int | bool:
    """The value of a tensor of one element, as Python's number."""
    value = tensor.item()
    if isinstance(value, complex):
        raise BadNumber("a complex number on the host")
    return value


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MAX_BITS:
        raise OverflowError("a whole number that is too large")
    return base**exponent


OPERATIONS: dict[str, Callable[..., Any]] = {
    "item": item, "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": _power, "neg": operator.neg, "abs": abs, "float": float,
    "int": int, "round": round, "min": min, "max": max, "sqrt": math.sqrt, "exp": math.exp, "expm1": math.expm1,
    "log": math.log, "log2": math.log2, "log10": math.log10, "log1p": math.log1p, "sin": math.sin, "cos": math.cos,
    "tan": math.tan, "tanh": math.tanh, "sinh": math.sinh, "cosh": math.cosh, "asin": math.asin, "acos": math.acos,
    "atan": math.atan, "atan2": math.atan2, "erf": math.erf, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc,
    "fabs": math.fabs, "hypot": math.hypot, "fmod": math.fmod, "copysign": math.copysign,
}  # fmt: skip


def compute(operation: str, args: Sequence[Any]) -> float | int | bool:
    """The result of an operation. Raises BadNumber."""
    try:
        value = OPERATIONS[operation](*args)
    except (ArithmeticError, ValueError, TypeError) as error:
        raise BadNumber(f"{operation} of numbers on the host: {error}") from error
    if not isinstance(value, (bool, int, float)) or (isinstance(value, int) and value.bit_length() > MAX_BITS):
        raise BadNumber(f"{operation} of numbers on the host gives no number that a kernel takes")
    return value
