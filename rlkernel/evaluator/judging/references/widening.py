"""A reference in float64, although its text casts: `a @ w.float()` of doubles has operands of two dtypes, and does not run.

So does `torch.zeros(n)` beside doubles. Where a reference fails in float64 for such a reason, it is called again with everything
that it casts to a narrower floating-point dtype, or makes in one, in float64. Then its own roundings are part of its own error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

NARROW = (torch.float32, torch.float16, torch.bfloat16)
"""The dtypes that become float64."""


class _Wide(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Operators that are asked for a narrow dtype are asked for float64."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        options = dict(kwargs or {})
        if options.get("dtype") in NARROW:
            options["dtype"] = torch.float64
        return func(*args, **options)


@contextmanager
def without_casts() -> Iterator[None]:
    """Inside, what would be cast to a narrower floating-point dtype, or made in one, is float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Wide():  # type: ignore[no-untyped-call]
            yield
    finally:
        torch.set_default_dtype(before)
