"""What a GPU refuses and a host computes: products of whole numbers and of truth values. A candidate is told so where it is
traced, as it would be told where it runs."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch

from rlkernel.evaluator.program.operators import base_name

_KERNELS = {
    "mm": "addmm_cuda", "addmm": "addmm_cuda", "bmm": "baddbmm_cuda", "baddbmm": "baddbmm_cuda", "addbmm": "baddbmm_cuda",
    "mv": "addmv_impl_cuda", "addmv": "addmv_impl_cuda", "dot": "dot", "vdot": "vdot", "convolution": "convolution_cuda",
}  # fmt: skip
"""Operator -> what torch calls its kernel, which has no other kinds of numbers than floating-point and complex ones."""
_KINDS = {
    torch.bool: "Bool", torch.uint8: "Byte", torch.int8: "Char", torch.int16: "Short", torch.int32: "Int", torch.int64: "Long",
}  # fmt: skip


@functools.cache
def _kernel_of(func: Any) -> str | None:
    return _KERNELS.get(base_name(str(func)))


def refuse(func: Any, args: Sequence[Any]) -> None:
    """Raises RuntimeError, in torch's words, where an operator on the GPU does not take such tensors."""
    kernel = _kernel_of(func)
    kinds = [arg.dtype for arg in args if isinstance(arg, torch.Tensor)] if kernel is not None else []
    if kinds and kinds[-1] in _KINDS:
        raise RuntimeError(f"\"{kernel}\" not implemented for '{_KINDS[kinds[-1]]}'")
