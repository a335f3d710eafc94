"""Triton's semantic for interpreted kernels: an argument that is zero is one that was given.

Triton asks `if other:` to learn whether a load has an `other`. When it compiles, a value of a kernel is always true. In its
interpreter a single element is as true as its number, so that `tl.load(x + i - 1, mask=i > 0, other=0.0)` would have no `other`;
and whether a block from memory is true, nobody knows while a launch is priced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import triton.language as tl
from triton.language.semantic import TritonSemantic


@contextmanager
def _given(*arguments: Any) -> Iterator[None]:
    """Inside, all values of a kernel are true, if one of the arguments is such a value."""
    if not any(isinstance(argument, tl.tensor) for argument in arguments):
        yield
        return
    before = tl.tensor.__bool__
    tl.tensor.__bool__ = lambda tensor: True
    try:
        yield
    finally:
        tl.tensor.__bool__ = before


class Semantic(TritonSemantic):  # type: ignore[misc]
    """Triton's semantic, which tells an argument that is zero, or comes from memory, from one that is not there."""

    def _load_legacy(self, ptr: Any, mask: Any, other: Any, *options: Any) -> Any:
        with _given(mask, other):
            return super()._load_legacy(ptr, mask, other, *options)

    def _store_legacy(self, ptr: Any, val: Any, mask: Any, *options: Any) -> Any:
        with _given(mask):
            return super()._store_legacy(ptr, val, mask, *options)

    def dot_scaled(self, lhs: Any, lhs_scale: Any, lhs_format: Any, rhs: Any, rhs_scale: Any, rhs_format: Any, *rest: Any) -> Any:
        """A format is a constant of the kernel, which the interpreter has as plain text."""
        forms = [form if isinstance(form, tl.constexpr) else tl.constexpr(form) for form in (lhs_format, rhs_format)]
        return super().dot_scaled(lhs, lhs_scale, forms[0], rhs, rhs_scale, forms[1], *rest)
