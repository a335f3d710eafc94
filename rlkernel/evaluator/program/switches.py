"""Switches of torch that host code sets for products and for cuDNN. An operator keeps those that are not as torch ships them.

    matmul_tf32            torch.backends.cuda.matmul.allow_tf32 = True, torch.set_float32_matmul_precision("high")
    cudnn_float32          torch.backends.cudnn.allow_tf32 = False
    cudnn_deterministic    torch.backends.cudnn.deterministic = True

`torch.backends.cudnn.benchmark` has no effect: what cuDNN finds stays in the process, where it would serve the reference, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from rlkernel.evaluator.program import recurrent
from rlkernel.evaluator.program.operators import base_name

MATMUL_TF32 = "matmul_tf32"
CUDNN_FLOAT32 = "cudnn_float32"
DETERMINISTIC = "cudnn_deterministic"
NAMES = frozenset({MATMUL_TF32, CUDNN_FLOAT32, DETERMINISTIC})
_PRODUCTS = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "addbmm", "scaled_dot_product_attention", "_trilinear", "_cdist_forward", "_euclidean_dist"}
)
_ADDING = frozenset({"addmm", "baddbmm", "addbmm"})
"""Products that add their first argument, which is not rounded."""
_CONVOLUTIONS = frozenset({"convolution", "_convolution", "cudnn_convolution", "cudnn_convolution_transpose"})


def switches_of(op: str) -> tuple[str, ...]:
    """The switches that are set now and concern an operator such as `aten.mm.default`."""
    kind = _kind(op)
    if not kind:
        return ()
    exact = _precision(kind) != "tf32"
    if kind == "matmul":
        return () if exact else (MATMUL_TF32,)
    return (*((CUDNN_FLOAT32,) if exact else ()), *((DETERMINISTIC,) if torch.backends.cudnn.deterministic else ()))


@functools.cache
def _kind(op: str) -> str:
    """What torch calls the precision of an operator's products; empty for an operator without."""
    name = base_name(op)
    if name in _PRODUCTS:
        return "matmul"
    return "rnn" if recurrent.is_recurrent(op) else "conv" if name in _CONVOLUTIONS else ""


def _precision(what: str) -> str:
    """What torch may use for float32: "tf32", "ieee" or "none". `allow_tf32` raises where code has used torch's newer names."""
    getter: Callable[[str, str], str] = torch._C._get_fp32_precision_getter
    return getter("cuda", what)


def under(names: Sequence[str], call: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A call with torch's switches as the candidate has set them. tf32 stays off where the evaluation allows none at all. A CPU
    has no tf32: there, the operands of a product are rounded to it."""
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = cuda.allow_tf32, cudnn.allow_tf32, cudnn.deterministic
    cuda.allow_tf32 = before[0] or (MATMUL_TF32 in names and before[1])
    cudnn.allow_tf32 = before[1] and CUDNN_FLOAT32 not in names
    cudnn.deterministic = before[2] or DETERMINISTIC in names
    if MATMUL_TF32 in names and cuda.allow_tf32:
        adds = getattr(call, "__name__", "").split(".")[0].removesuffix("_") in _ADDING
        args = [*args[:adds], *map(_rounded, args[adds:])]
    try:
        return call(*args, **kwargs)
    finally:
        cuda.allow_tf32, cudnn.allow_tf32, cudnn.deterministic = before


def _rounded(value: Any) -> Any:
    """A float32 tensor of a CPU with tf32's 10 bits of mantissa, halves away from zero; anything else as it is."""
    if not isinstance(value, torch.Tensor) or value.device.type != "cpu" or value.dtype is not torch.float32:
        return value
    return ((value.view(torch.int32) + (1 << 12)) & (-1 << 13)).view(torch.float32)
