"""What `torch.autocast("cuda")` hands to each operator, for whoever calls operators where it does nothing: off a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

# https://docs.pytorch.org/docs/stable/amp.html, the lists for CUDA, in terms of the operators that reach a dispatch mode.
LOWER = {
    "mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "addr", "convolution", "_convolution", "_prelu_kernel",
    "scaled_dot_product_attention",
}  # fmt: skip
FULL = {
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt", "sinh", "tan",
    "pow", "softplus", "native_layer_norm", "native_group_norm", "norm", "linalg_vector_norm", "renorm", "cumprod", "cumsum",
    "dist", "_euclidean_dist",
    "prod", "_softmax", "_log_softmax", "sum", "mse_loss", "smooth_l1_loss", "huber_loss", "nll_loss_forward", "soft_margin_loss",
    "multi_margin_loss", "multilabel_margin_loss_forward", "_cdist_forward", "_pdist_forward", "_fused_rms_norm",
}  # fmt: skip


def set_dtype() -> torch.dtype | None:
    """The dtype of `torch.autocast("cuda")` around the call in progress, which a dispatch mode itself is not told."""
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None


def wanted(name: str, lower: torch.dtype | None) -> torch.dtype | None:
    """The dtype that an operator's arguments are cast to, where autocast's is `lower`; None where they stay.

    >>> wanted("addmm", torch.half), wanted("exp", torch.half), wanted("add", torch.half), wanted("addmm", None)
    (torch.float16, torch.float32, None, None)
    """
    if lower is None:
        return None
    return lower if name in LOWER else torch.float32 if name in FULL else None


def _to(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor.to(dtype)


def cast(
    dtype: torch.dtype | None, args: tuple[Any, ...], kwargs: dict[str, Any],
    by: Callable[[torch.Tensor, torch.dtype], torch.Tensor] = _to,
) -> tuple[tuple[Any, ...], dict[str, Any]]:  # fmt: skip
    """An operator's arguments, cast to a dtype if there is one. by: how a tensor is cast."""
    if dtype is None:
        return args, kwargs

    def one(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([one(item) for item in value])
        is_cast = isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype not in (dtype, torch.float64)
        return by(value, dtype) if is_cast else value

    return tuple(one(value) for value in args), {key: one(value) for key, value in kwargs.items()}
