"""What an ATen operator computes and moves, by name. An operator that no table here knows has no cost, and is refused where
time is modelled: whoever could call it would have its work for free.

Memory bounds all but matrix products and their like (`operations`); operators that PyTorch itself marks as pointwise need no
entry.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import torch

from rlkernel.evaluator.judging.costs.operations import FLOPS
from rlkernel.evaluator.program.operators import LISTS, argument, base_name, operator, writes
from rlkernel.evaluator.program.schema import Op
from rlkernel.evaluator.program.tensors import extent

Tensors = Sequence[torch.Tensor]


class NoCost(Exception):
    """The model of time knows nothing of an operator."""

    def __init__(self, op: str) -> None:
        super().__init__(f"operator {op} has no modelled cost: without a GPU, use operators that have one, or a kernel")


FREE = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "detach", "lift_fresh"}
GATHERS = {"embedding", "index", "gather", "index_select", "take", "_unsafe_index", "_unsafe_masked_index", "masked_select"}
"""Operators that read no more of their source than they write, and the numbers that say where."""
SCATTERS = {
    "_index_put_impl", "_unsafe_index_put", "index_add", "index_copy", "index_fill", "index_put", "index_reduce", "masked_fill",
    "masked_scatter", "put", "scatter", "scatter_add", "scatter_reduce",
}  # fmt: skip
"""Operators that return all of what they change a part of: at most an element for each that they are given besides."""
MASKED = {"masked_fill", "masked_scatter"}
"""Those of them that a mask tells where, which says how much only where it is read."""
COMBINES = {"index_add", "index_reduce", "scatter_add", "scatter_reduce"}
"""Those of them that read what they change."""
BAGS = {"_embedding_bag", "_embedding_bag_forward_only"}
"""Operators that read one row of their first argument for each element of their second one."""
POOLS = {
    "avg_pool1d": 1, "avg_pool2d": 2, "avg_pool3d": 3, "max_pool2d_with_indices": 2, "max_pool3d_with_indices": 3,
    "fractional_max_pool2d": 2, "fractional_max_pool3d": 3,
}  # fmt: skip
"""Operators that look at a window for each element that they make, and its dimensions."""
OVERWRITES = {
    "copy", "fill", "zero", "normal", "uniform", "random", "exponential", "bernoulli", "cauchy", "log_normal", "geometric",
}  # fmt: skip
"""Operators that, in place, replace what their first argument holds without a look at it."""
ALIKE = {
    "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "new_zeros", "new_ones", "new_full",
}  # fmt: skip
"""Operators that make a tensor of their first argument's kind, of which they read nothing."""
TRIANGLES = {"tril", "triu"}
"""Operators that read a triangle of their argument."""
PASSES = {"sort": 4.0, "topk": 4.0, "kthvalue": 4.0, "median": 4.0, "nanmedian": 4.0, "mode": 4.0}
"""How often data is read and written by operators that sort."""
MEMORY = GATHERS | BAGS | FREE | {*PASSES} | {
    "__ilshift__", "__irshift__", "__lshift__", "__rshift__", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
    "_chunk_cat", "_ctc_loss", "_fused_rms_norm", "_index_put_impl", "_is_all_true", "_log_softmax", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "_prelu_kernel", "_reshape_alias", "_safe_softmax", "_softmax",
    "_thnn_fused_gru_cell", "_thnn_fused_lstm_cell",
    "_sample_dirichlet", "_stack", "_standard_gamma", "_to_copy", "_unsafe_index_put", "_unsafe_view",
    "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
    "_weight_norm_interface", "abs", "adaptive_avg_pool1d", "adaptive_avg_pool2d",
    "adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid_generator", "alias_copy", "all",
    "amax", "amin", "aminmax", "any", "arange", "argmax", "argmin", "as_strided_copy", "as_strided_scatter", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "bartlett_window", "batch_norm_elemt", "batch_norm_stats", "batch_norm_update_stats",
    "bernoulli", "binary_cross_entropy", "binary_cross_entropy_with_logits", "bincount", "binomial", "blackman_window",
    "block_diag", "bucketize", "cat", "cauchy", "channel_shuffle", "col2im", "complex", "constant_pad_nd", "copy",
    "copysign", "count_nonzero", "cudnn_affine_grid_generator", "cudnn_batch_norm", "cudnn_grid_sampler", "cummax",
    "cummin", "cumprod", "cumsum", "detach_copy", "diag_embed", "diagonal_copy", "diagonal_scatter", "dist", "dropout",
    "embedding_renorm", "eq", "expand_copy", "exponential", "eye", "fft_fftfreq", "fft_rfftfreq", "fill", "flip",
    "floor_divide", "fractional_max_pool2d", "fractional_max_pool3d", "full", "full_like", "gcd", "ge", "gelu",
    "geometric", "glu", "grid_sampler_2d", "grid_sampler_3d", "gt", "hamming_window", "hann_window", "hardswish",
    "heaviside", "histc", "huber_loss", "im2col", "index_add", "index_copy", "index_fill", "index_put", "index_reduce",
    "isin", "kaiser_window", "lcm", "le", "leaky_relu", "lift", "lift_fresh_copy", "linalg_cross", "linalg_vector_norm",
    "linspace", "log_normal", "log_sigmoid_forward", "log_softmax", "logcumsumexp", "logspace", "logsumexp", "lt",
    "masked_fill", "masked_scatter", "max", "max_pool2d_with_indices", "max_pool3d_with_indices", "max_unpool2d",
    "max_unpool3d", "mean", "min", "mish", "mse_loss", "multi_margin_loss", "multilabel_margin_loss_forward",
    "multinomial", "nansum", "narrow_copy", "native_batch_norm", "native_dropout", "native_group_norm",
    "native_layer_norm", "native_norm", "ne", "new_full", "new_ones", "new_zeros", "nll_loss2d_forward",
    "nll_loss_forward", "nonzero_static", "norm", "normal", "normal_functional", "ones", "ones_like", "permute_copy",
    "pixel_shuffle", "pixel_unshuffle", "poisson", "polar", "prod", "put", "rand", "rand_like", "randint", "randint_like",
    "randn", "randn_like", "random", "randperm", "range", "reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "renorm",
    "repeat", "repeat_interleave", "replication_pad1d", "replication_pad2d", "replication_pad3d", "roll", "rot90",
    "rrelu_with_noise", "rrelu_with_noise_functional", "scalar_tensor", "scatter", "scatter_add", "scatter_reduce",
    "searchsorted", "segment_reduce", "select_copy", "select_scatter", "slice_copy", "slice_scatter", "smooth_l1_loss",
    "soft_margin_loss", "softmax", "split_copy", "split_with_sizes_copy", "squeeze_copy", "stack", "std", "std_mean",
    "sum", "t_copy", "threshold", "trace", "transpose_copy", "tril", "tril_indices", "triu", "triu_indices",
    "unbind_copy", "unfold", "unfold_copy", "uniform", "unsafe_split", "unsafe_split_with_sizes", "unsqueeze_copy",
    "upsample_bicubic2d", "upsample_bilinear2d", "upsample_linear1d", "upsample_nearest1d", "upsample_nearest2d",
    "upsample_nearest3d", "upsample_trilinear3d", "var", "var_mean", "view_as_complex_copy", "view_as_real_copy",
    "view_copy", "zero", "zeros", "zeros_like",
    "diagonal_backward", "embedding_dense_backward", "select_backward", "slice_backward", "unfold_backward",
}  # fmt: skip
"""Operators that memory bounds."""


@functools.cache
def _pointwise(name: str) -> bool:
    """Whether PyTorch marks an overload of the operator as pointwise; those that write into `out` carry no mark."""
    packets = [getattr(torch.ops.aten, n, None) for n in (name, f"{name}_")]
    overloads = [getattr(packet, overload) for packet in packets if packet is not None for overload in packet.overloads()]
    return any(torch.Tag.pointwise in overload.tags for overload in overloads)


def _differentiates(name: str) -> bool:
    """Whether an operator is the derivative of one that memory bounds, and so is bound by memory, too."""
    stem = name.removesuffix("_data").removesuffix("_backward")
    return stem != name.removesuffix("_data") and any(each in MEMORY or _pointwise(each) for each in (stem, f"{stem}_forward"))


def has_cost(op: str) -> bool:
    """Whether the model of time knows an operator that does work. Views are known by what they return, see `roofline.is_free`."""
    name = base_name(op)
    known = name in FLOPS or name in MEMORY or _pointwise(name) or _differentiates(name)
    each = name.removeprefix(LISTS)
    return known or (each != name and each not in FLOPS and (each in MEMORY or _pointwise(each)))


def dense_bytes(tensor: torch.Tensor) -> int:
    """Bytes behind a tensor: broadcast dimensions count once, and so does what windows share, as those of `unfold` do."""
    elements = 1
    for size, stride in zip(tensor.size(), tensor.stride(), strict=True):
        elements *= size if stride != 0 or size == 0 else 1
    return min(elements, extent(tensor.size(), tensor.stride())) * tensor.element_size()


def read_bytes(step: Op, tensor: torch.Tensor) -> float:
    """The most that an operator reads of one argument."""
    return dense_bytes(tensor) * (_triangle(step, tensor) if base_name(step.op) in TRIANGLES else 1.0)


def _triangle(step: Op, tensor: torch.Tensor) -> float:
    """The share of a matrix that `tril` or `triu` leaves, by its diagonal."""
    rows, columns = tensor.shape[-2:]
    lower = base_name(step.op) == "tril"
    first = int(argument(step, "diagonal", 0)) + lower  # elements of row 0 that are left of the border

    def left(row: int) -> int:
        """The elements left of the border in the rows above this one, counted from the row in which the border begins."""
        inside = min(max(row, 0), columns)
        return inside * (inside - 1) // 2 + (max(row, 0) - inside) * columns

    share = (left(first + rows) - left(first)) / max(1, rows * columns)
    return share if lower else 1.0 - share


def touched(step: Op, read: Tensors, made: Tensors) -> float:
    """How many elements an operator looks at: one that windows share as often as it lies in one, be they those of a pool or those
    of `unfold`. `read` as `taken` gives it."""
    windows = float(made[0].numel()) if made and base_name(step.op) in POOLS else 0.0
    read = read[1:] if scatters_in_place(step, read) else read
    for axis in range(POOLS.get(base_name(step.op), 0)):
        sizes = argument(step, "kernel_size")
        windows *= sizes[min(axis, len(sizes) - 1)] if isinstance(sizes, (list, tuple)) else sizes
    return max(windows, *(float(t.numel()) for t in read), 0.0)


def taken(step: Op, given: Tensors) -> Tensors:
    """The arguments of an operator, in the order of its schema, whose contents it reads: neither `out` nor what it overwrites."""
    arguments, name = operator(step.op)._schema.arguments, base_name(step.op)
    overwrites = name in OVERWRITES and arguments[0].alias_info is not None and arguments[0].alias_info.is_write
    return given[name in ALIKE or overwrites : len(given) - sum(argument.is_out for argument in arguments)]


def changes_a_part(step: Op) -> bool:
    """Whether an operator changes a part of its first argument, and leaves the rest where it is."""
    first = operator(step.op)._schema.arguments[0].alias_info
    return base_name(step.op) in SCATTERS and first is not None and bool(first.is_write)


def scatters_in_place(step: Op, read: Tensors) -> bool:
    """Whether an operator changes as much of its first argument as numbers name: a mask names nothing."""
    by_mask = base_name(step.op) in MASKED or any(t.dtype is torch.bool for t in read[1:-1])
    return changes_a_part(step) and not by_mask


def changed_bytes(step: Op, read: Tensors) -> float:
    """What a scatter in place writes of its first argument, where none of its numbers name the same."""
    return min(float(dense_bytes(read[0])), scattered_elements(step, read) * read[0].element_size())


def scattered_elements(step: Op, read: Tensors) -> float:
    """The elements that a scatter's numbers name, however few values are put there."""
    name, whole = base_name(step.op), read[0]
    if "index_put" in name:
        where = argument(step, "indices", ())
        axes = [axis for axis, one in enumerate(where) if one is not None]
        rest = [size for axis, size in enumerate(whole.shape) if axis not in axes]
        named = np.broadcast_shapes(*[tuple(t.shape) for t in read[1 : 1 + len(axes)]])
        return float(math.prod(named) * math.prod(rest))
    if name.startswith("index_"):
        axis = argument(step, "dim", 0)
        return read[1].numel() * whole.numel() / max(1, whole.shape[axis] if whole.dim() else 1)
    return float(read[1].numel())


def moved_bytes(step: Op, read: Tensors, made: Tensors) -> float:
    """What an operator reads and writes, each once, unless it sorts. `read` as `taken` gives it."""
    name = base_name(step.op)
    if scatters_in_place(step, read):
        changed = changed_bytes(step, read)
        reads_too = name in COMBINES or bool(argument(step, "accumulate", False))
        return sum(read_bytes(step, t) for t in read[1:]) + changed * (2.0 if reads_too else 1.0)
    written = float(sum(dense_bytes(t) for t in made))
    if name in BAGS:
        row = dense_bytes(read[0]) / max(1, read[0].shape[0])
        return written + read[1].numel() * (row + read[1].element_size())
    whole = sum(read_bytes(step, t) for t in read)
    if name in GATHERS:  # rows of a long table are named by few numbers
        source = read_bytes(step, read[0])
        whole = min(whole, 2 * written, min(source, written) + whole - source)
    return PASSES.get(name, 1.0) * (whole + written)


def of_first_bytes(step: Op, made: Tensors) -> float:
    """The most that an operator needs of its first argument: a gather as much as it makes, and nothing of what a scatter in
    place changes a part of."""
    name = base_name(step.op)
    if name in SCATTERS and writes(step):
        return 0.0
    return float(sum(dense_bytes(t) for t in made)) if name in GATHERS else float("inf")
