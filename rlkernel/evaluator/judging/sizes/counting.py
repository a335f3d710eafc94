"""Whether the values of a reference depend on how large it is, and not only on its elements.

A mean of 96 columns is a sum divided by 96, and so is whatever a candidate divides by 96, whether it means the columns or not. A
sum or a product has no such number. What is asked is the reference alone: its numbers, which may be others at full shape, and its
operators. Of an operator that is not known to take elements as they are, the values may depend on how many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import torch

from rlkernel.evaluator.program.operators import base_name, is_random, operator
from rlkernel.evaluator.program.schema import Literal, Op, Program, Step
from rlkernel.evaluator.program.values import Value

COUNTLESS = {
    # products and sums
    "addbmm", "addmm", "addmv", "addr", "all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "baddbmm", "bmm",
    "convolution", "cummax", "cummin", "cumprod", "cumsum", "dot", "linalg_vector_norm", "logcumsumexp", "logsumexp", "max",
    "max_pool2d_with_indices", "max_pool3d_with_indices", "min", "mm", "mv", "nansum", "norm", "prod", "sum", "trace",
    "_log_softmax", "_softmax",
    # windows, as long as `COUNTED` says
    "avg_pool2d", "avg_pool3d",
    # places
    "argsort", "bincount", "bucketize", "cat", "constant_pad_nd", "diag_embed", "diagonal", "embedding", "flip", "gather",
    "index", "index_add", "index_copy", "index_fill", "index_put", "index_select", "kthvalue", "masked_scatter", "masked_select",
    "nonzero", "repeat", "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d", "roll", "scatter",
    "scatter_add", "searchsorted", "slice_scatter", "select_scatter", "sort", "stack", "take", "topk", "tril", "triu",
    # copies, zeros, and what has no contents
    "_to_copy", "_unsafe_view", "clone", "copy", "empty", "empty_like", "empty_strided", "lift_fresh_copy", "new_empty",
    "new_empty_strided", "new_zeros", "scalar_tensor", "zero", "zeros", "zeros_like",
    # random numbers, whose distributions have numbers
    "bernoulli", "dropout", "exponential", "native_dropout", "normal", "rand", "rand_like", "randn", "randn_like",
    "uniform",
    # of each element alone, without a mark that says so
    "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell", "floor_divide", "log_sigmoid_forward",
}  # fmt: skip
"""Operators that have no count of elements in their values, beside those that take each element alone, and views."""
COUNTED = {"kernel_size", "divisor_override"}
"""Whole numbers that pools divide by."""

WHOLE = {"int", "Optional[int]", "bool", "Optional[bool]"}


def counts_elements(small: Program, full: Program) -> bool:
    """Whether a reference, traced at both sizes, may divide by a count, or has other numbers at full shape."""
    pairs = zip_longest(_steps(small.forward), _steps(full.forward))
    return _kept(small.once) != _kept(full.once) or any(
        one is None or other is None or _depends(one, other) for one, other in pairs
    )


def _steps(steps: Iterable[Step]) -> Iterator[Op | Literal]:
    return (step for step in steps if isinstance(step, (Op, Literal)))


def _kept(steps: Iterable[Step]) -> list[Value]:
    """What `__init__` makes of numbers, such as the root of a size. Bounds of random weights are in these."""
    found: list[Value] = []
    for step in _steps(steps):
        if isinstance(step, Op):
            found += [] if is_random(step.op) else [_numbers(step)]
        elif step.shape == ():
            found.append(step.data)
    return found


def _depends(one: Op | Literal, other: Op | Literal) -> bool:
    if isinstance(one, Literal) or isinstance(other, Literal):
        return not (isinstance(one, Literal) and isinstance(other, Literal)) or one.data != other.data
    overload = operator(one.op)
    known = torch.Tag.pointwise in overload.tags or overload.is_view or base_name(one.op) in COUNTLESS
    return not known or one.op != other.op or _numbers(one) != _numbers(other)


def _numbers(step: Op) -> list[Value]:
    """The numbers that an operator computes with; its axes, places and extents are whole numbers by its schema."""
    arguments = operator(step.op)._schema.arguments
    whole = {argument.name for argument in arguments if str(argument.type) in WHOLE}
    given = [*zip((argument.name for argument in arguments), step.args, strict=False), *step.kwargs.items()]
    plain = [value for name, value in given if name not in whole and type(value) in (int, float)]
    return plain + [value for name, value in given if name in COUNTED]
