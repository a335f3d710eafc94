"""The ATen operators that a Program may name, and what they do to memory."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rlkernel.evaluator.program import recurrent
from rlkernel.evaluator.program.schema import Op, Program, Step
from rlkernel.evaluator.program.values import MalformedProgram

_PRIVATE = {
    "_softmax", "_log_softmax", "_to_copy", "_unsafe_view", "_reshape_alias", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d",
    "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "_weight_norm_interface", "_prelu_kernel",
    "_index_put_impl_",
    "_cdist_forward", "_pdist_forward", "_embedding_bag", "_embedding_bag_forward_only", "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d", "_upsample_bilinear2d_aa", "_trilinear", "_unsafe_index", "_unsafe_index_put", "_stack", "_conj",
    "_neg_view", "_fft_c2c", "_fft_r2c", "_fft_c2r", "_linalg_det", "_linalg_solve_ex", "_linalg_svd", "_linalg_eigh",
    "_safe_softmax", "_euclidean_dist",
    "_fused_rms_norm", "_transformer_encoder_layer_fwd", "_grouped_mm", "_scaled_mm",
    "_unsafe_masked_index", "_chunk_cat", "_is_all_true", "_assert_async", "_convolution", "_linalg_slogdet", "_ctc_loss",
    "_upsample_bicubic2d_aa", "_int_mm", "_standard_gamma", "_sample_dirichlet",
    "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell",
    # derivatives, as `torch.autograd.grad` calls them
    "_softmax_backward_data", "_log_softmax_backward_data", "_prelu_kernel_backward", "_weight_norm_interface_backward",
    "_adaptive_avg_pool2d_backward", "_adaptive_avg_pool3d_backward",
}  # fmt: skip
COMPARISONS = frozenset({"eq", "ne", "gt", "ge", "lt", "le"})
"""The names of operators that compare numbers."""
LISTS = "_foreach_"
"""Begins the names of operators that do to each tensor of a list what another operator does to one."""
_REFUSED = {
    "from_file", "set_", "set_data", "record_stream", "pin_memory", "item", "resize_", "resize", "copy_sparse_to_sparse_",
    "rename",
    "retain_grad", "requires_grad_", "to_mkldnn", "to_dense", "data", "is_pinned", "resize_as_", "resize_as_sparse_",
}  # fmt: skip
_OF_THE_HOST = {"slow_conv3d_forward", "histogram", "_scaled_dot_product_flash_attention_for_cpu"}
"""Operators that no GPU has."""
_WHOLE = {"scaled_dot_product_attention", "dropout", "dropout_", "_fused_rms_norm", *recurrent.GATES}
"""Made of other operators, which depend on the device, but recorded whole. Of the rest a trace has the parts, whose cost is
known."""
_FRESH = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}


@functools.cache
def operator(name: str) -> Any:
    """`aten.add.Tensor` -> the overload. Raises MalformedProgram unless it is allow-listed."""
    parts = name.split(".")
    if len(parts) != 3 or parts[0] != "aten":
        raise MalformedProgram(f"{name} is not an ATen operator")
    base = parts[1]
    if base in _OF_THE_HOST:
        raise MalformedProgram(f"operator {name} is the host's alone: a GPU has none of it")
    private = base.startswith("_") and not base.startswith(("__", LISTS)) and base not in _PRIVATE
    if private or base in _REFUSED:
        raise MalformedProgram(f"operator {name} is not allowed")
    packet = getattr(torch.ops.aten, base, None)
    overload = getattr(packet, parts[2], None) if packet is not None else None
    if overload is None:
        raise MalformedProgram(f"{name} is not an ATen operator of this torch")
    if base not in _WHOLE and torch._C._dispatch_has_kernel_for_dispatch_key(overload.name(), "CompositeImplicitAutograd"):
        raise MalformedProgram(f"operator {name} is made of others, which a trace would name")
    return overload


@functools.cache
def places_of(name: str) -> dict[str, int]:
    """Argument of an operator -> its place in the schema."""
    return {argument.name: place for place, argument in enumerate(operator(name)._schema.arguments)}


@functools.cache
def is_random(name: str) -> bool:
    """Whether an operator, `aten.rand` or one of its overloads, takes random numbers from the default generator."""
    packet = getattr(torch.ops.aten, name.split(".")[1], None)
    overloads = [] if packet is None else [getattr(packet, overload) for overload in packet.overloads()]
    return any(torch.Tag.nondeterministic_seeded in overload.tags for overload in overloads)


def operators_of(program: Program) -> set[str]:
    """The names of the operators that a forward calls, of those in place without what says so: `relu` of `aten.relu_.default`."""
    return {base_name(step.op) for step in program.forward if isinstance(step, Op)}


def allocates(step: Step) -> bool:
    """Whether a step makes memory without contents."""
    return isinstance(step, Op) and step.op.split(".")[1] in _FRESH and not writes(step)


def writes(step: Op) -> bool:
    """Whether an operator writes into one of its arguments: in place, or into `out`."""
    return any(a.alias_info is not None and a.alias_info.is_write for a in operator(step.op)._schema.arguments)


def base_name(op: str) -> str:
    """`aten.add_.Tensor` -> `add`: the operator without its overload, in place or not."""
    name = op.split(".")[1]
    return name.removesuffix("_") if not name.endswith("__") else name


def by_name(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments of one call of an operator's overload, as a dispatch mode sees it: those by position under their names.

    >>> by_name(torch.ops.aten.sum.dim_IntList, ("x", [0]), {"keepdim": True})
    {'self': 'x', 'dim': [0], 'keepdim': True}
    """
    return {a.name: value for a, value in zip(func._schema.arguments, args, strict=False)} | dict(kwargs or {})


def argument(step: Op, name: str, default: Any = None) -> Any:
    """A plain argument of a call, given by position or by keyword."""
    if name in step.kwargs:
        return step.kwargs[name]
    names = [a.name for a in operator(step.op)._schema.arguments]
    place = names.index(name) if name in names else len(step.args)
    return step.args[place] if place < len(step.args) else default
