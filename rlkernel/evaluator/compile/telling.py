"""What Triton says of a kernel that it refuses, in one line."""

from __future__ import annotations

import ast
import difflib
import re

import triton.language as tl
from triton.compiler.errors import CompilationError

_MISSING = re.compile(r"module 'triton\.language' has no attribute '(\w+)'")
_INSTEAD = {
    "mean": "tl.sum(x, axis) / n",
    "var": "tl.sum((x - mean) * (x - mean), axis) / n",
    "std": "tl.sqrt of tl.sum((x - mean) * (x - mean), axis) / n",
    "prod": "tl.reduce(x, axis, multiply) with a function of your own",
    "relu": "tl.maximum(x, 0.0)",
    "silu": "x * tl.sigmoid(x)",
    "gelu": "0.5 * x * (1 + tl.erf(x * 0.7071067811865476))",
    "softplus": "tl.log(1 + tl.exp(x)) where x is not large",
    "tanh": "2 * tl.sigmoid(2 * x) - 1, or libdevice.tanh",
    "pow": "libdevice.pow(x, y), or x * x",
    "round": "libdevice.rint(x)",
    "isnan": "x != x",
    "sign": "tl.where(x > 0, 1.0, tl.where(x < 0, -1.0, 0.0))",
    "square": "x * x",
    "log1p": "libdevice.log1p(x)",
    "expm1": "libdevice.expm1(x)",
    "reciprocal": "1.0 / x",
    "matmul": "tl.dot(a, b)",
    "transpose": "tl.trans(x)",
    "concatenate": "tl.cat, or tl.join",
    "stack": "tl.join(a, b)",
    "any": "tl.max(x.to(tl.int32), axis)",
    "all": "tl.min(x.to(tl.int32), axis)",
}
"""Name that torch or numpy have and Triton's language has not -> what to write."""


def first_line(error: CompilationError) -> str:
    """The compiler's message without the source excerpt that it repeats, and what to write for a name that there is not."""
    cause: BaseException = error
    while isinstance(cause, CompilationError) and cause.__cause__ is not None:
        cause = cause.__cause__
    text = cause.error_message if isinstance(cause, CompilationError) else f"{type(cause).__name__}: {cause}"
    lines = _as_raised(text or str(cause)).strip().splitlines()
    return lines[0][:250] + _instead(lines[0]) if lines else type(cause).__name__


def _as_raised(text: str) -> str:
    r"""A message that is the `repr` of an error with one text, as Triton wraps them, written as Python tells of such errors.

    >>> _as_raised("AttributeError(\"no 'maxx'\")"), _as_raised("NameError('x')"), _as_raised("cannot add(1)"), _as_raised("f(1)")
    ("AttributeError: no 'maxx'", 'NameError: x', 'cannot add(1)', 'f(1)')
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # a sentence
        return text
    match call:
        case ast.Call(ast.Name(name), [ast.Constant(str(said))], []):
            return f"{name}: {said.strip()}"
    return text


def _instead(said: str) -> str:
    """What to write in place of a name that Triton's language does not have; nothing where that is not known.

    >>> _instead("AttributeError: module 'triton.language' has no attribute 'maximun'")
    '; write tl.maximum'
    >>> _instead("AttributeError: module 'triton.language' has no attribute 'relu'"), _instead("a sentence")
    ('; write tl.maximum(x, 0.0)', '')
    """
    found = _MISSING.search(said)
    if found is None:
        return ""
    near = difflib.get_close_matches(found[1], [name for name in vars(tl) if not name.startswith("_")], n=1, cutoff=0.8)
    known = _INSTEAD.get(found[1]) or next((f"tl.{name}" for name in near), None)
    return "" if known is None else f"; write {known}"
