"""Operators that choose a backend by device: recorded whole, so that they replay on another device as they would run there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rlkernel.evaluator.program import cells

WHOLE: dict[Any, Any] = {
    torch.nn.functional.scaled_dot_product_attention: torch.ops.aten.scaled_dot_product_attention.default,
    torch.dropout: torch.ops.aten.dropout.default,
    torch.dropout_: torch.ops.aten.dropout_.default,
    torch.lstm: torch.ops.aten.lstm.input,
    torch.gru: torch.ops.aten.gru.input,
    torch.rnn_tanh: torch.ops.aten.rnn_tanh.input,
    torch.rnn_relu: torch.ops.aten.rnn_relu.input,
}
"""What torch is asked for -> the operator that is recorded, with the same arguments."""
CELLS: dict[Any, Callable[..., Any]] = {torch.lstm_cell: cells.lstm_cell, torch.gru_cell: cells.gru_cell}
"""What a GPU computes by another operator than other devices -> the calls that it makes there, with the same arguments."""
RMS_NORM = (torch.nn.functional.rms_norm, torch.rms_norm)
"""What is one kernel on a GPU, and several operators elsewhere: see `rms_norm`."""
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}


def dropout(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> tuple[Any, tuple[Any, ...]]:
    """The operator that `torch.nn.functional.dropout` calls, with its arguments. A GPU has one kernel for it, which draws other
    numbers than the operators that it is made of."""
    return (torch.dropout_ if inplace else torch.dropout), (input, p, training)


def rms_norm(
    input: torch.Tensor, normalized_shape: Any, weight: torch.Tensor | None = None, eps: float | None = None
) -> tuple[Any, ...] | None:
    """The arguments of the one operator that a GPU computes `torch.rms_norm` by, and no other device; None where it does not."""
    alike = weight is None or weight.dtype is input.dtype
    turned = _CHANNELS_LAST.get(input.dim())
    in_order = input.is_contiguous() or turned is None or not input.is_contiguous(memory_format=turned)
    return (input, normalized_shape, weight, eps) if alike and in_order else None


def has_fused_cell(
    input: torch.Tensor, hx: Any, w_ih: torch.Tensor, w_hh: torch.Tensor, b_ih: Any = None, b_hh: Any = None
) -> bool:
    """Whether a GPU's own operator computes a recurrent cell: of rows, with both biases or none."""
    return input.dim() == w_ih.dim() == w_hh.dim() == 2 and (b_ih is None) == (b_hh is None)
