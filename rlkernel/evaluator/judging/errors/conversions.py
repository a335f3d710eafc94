"""Conversions of numbers to integers that cannot hold them: what they give differs between devices, and no answer is right."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Conversions(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Inside, sees whether a reference converts a floating-point number to an integer type that does not hold it.

    Example: `(100 * x).to(torch.int8)` holds what `torch.rand` draws, and not the same scaled by 8.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.overflow = False
        """Whether it has."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default and not self.overflow:
            self.overflow = _overflows(args[0], made.dtype)
        return made


def _overflows(given: torch.Tensor, dtype: torch.dtype) -> bool:
    whole = not dtype.is_floating_point and not dtype.is_complex and dtype is not torch.bool
    if not (whole and given.is_floating_point() and given.numel()):
        return False
    limits = torch.iinfo(dtype)
    kept = given.double().trunc()
    return not bool(((kept >= limits.min) & (kept <= limits.max)).all())
