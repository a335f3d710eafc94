"""Whether the values of a reference depend on how large it is, and not only on its elements.

A mean of 96 columns is a sum divided by 96, and so is whatever a candidate divides by 96, whether it means the columns or not. A
sum or a product has no such number. What is asked is the reference alone: operators that divide by a count, and numbers of its
arithmetic that are others at full shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from rlkernel.evaluator.program.schema import Op, Program

DIVIDES = {
    "_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "_fused_rms_norm", "adaptive_avg_pool1d", "batch_norm",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "corrcoef", "cov", "hinge_embedding_loss", "huber_loss",
    "kl_div", "l1_loss", "mean", "mse_loss", "nanmean", "native_batch_norm", "native_group_norm", "native_layer_norm",
    "nll_loss2d_forward", "nll_loss_forward", "scaled_dot_product_attention", "smooth_l1_loss", "soft_margin_loss",
    "std", "std_mean", "var", "var_mean",
}  # fmt: skip
"""Operators that divide by a number of elements, or by the root of one."""
ARITHMETIC = {
    "add", "addcdiv", "addcmul", "clamp", "clamp_max", "clamp_min", "div", "floor_divide", "fmod", "linspace", "mul", "pow",
    "remainder", "rsub", "sub",
}  # fmt: skip


def counts_elements(small: Program, full: Program) -> bool:
    """Whether a reference, traced at both sizes, divides by a count or has other numbers at full shape."""
    pairs = zip_longest(_steps(small), _steps(full))
    return any(one is None or other is None or _depends(one, other) for one, other in pairs)


def _steps(program: Program) -> Iterator[Op]:
    return (step for step in program.forward if isinstance(step, Op))


def _depends(one: Op, other: Op) -> bool:
    name = one.op.split(".")[1].removesuffix("_")
    return name in DIVIDES or (name in ARITHMETIC and _numbers(one) != _numbers(other))


def _numbers(step: Op) -> list[int | float]:
    return [value for value in (*step.args, *step.kwargs.values()) if type(value) in (int, float)]
