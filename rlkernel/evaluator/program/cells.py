"""Recurrent cells (LSTMCell, GRUCell) as a GPU computes them: two products, and one operator for all that follows, which no other
device has. Its parts elsewhere are 10 operators, and a kernel of them would be held against these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_Tensor = torch.Tensor
LSTM_KEPT, GRU_KEPT = 4, 5
"""What the operators write besides for a backward pass, in units of the hidden state."""


def lstm_cell(
    input: _Tensor, hx: Any, w_ih: _Tensor, w_hh: _Tensor, b_ih: _Tensor | None = None, b_hh: _Tensor | None = None
) -> tuple[_Tensor, _Tensor]:
    """`torch.lstm_cell` by the calls that a GPU makes."""
    hidden, cell = hx
    made = torch.ops.aten._thnn_fused_lstm_cell.default(input @ w_ih.t(), hidden @ w_hh.t(), cell, b_ih, b_hh)
    return made[0], made[1]


def gru_cell(
    input: _Tensor, hx: _Tensor, w_ih: _Tensor, w_hh: _Tensor, b_ih: _Tensor | None = None, b_hh: _Tensor | None = None
) -> _Tensor:
    """`torch.gru_cell` by the calls that a GPU makes."""
    made: tuple[_Tensor, ...] = torch.ops.aten._thnn_fused_gru_cell.default(input @ w_ih.t(), hx @ w_hh.t(), hx, b_ih, b_hh)
    return made[0]


def _without_data(gates: int, kept: int, states: int) -> Callable[..., tuple[_Tensor, ...]]:
    """What returns tensors like the results of such an operator of so many gates and states."""

    def made(
        input_gates: _Tensor, hidden_gates: _Tensor, state: _Tensor, input_bias: Any = None, hidden_bias: Any = None
    ) -> tuple[_Tensor, ...]:
        rows, width = state.shape
        wanted = [(rows, gates * width)] * 2 + [(gates * width,)] * 2
        given = (input_gates, hidden_gates, input_bias, hidden_bias)
        if any(t is not None and tuple(t.shape) != shape for t, shape in zip(given, wanted, strict=True)):
            raise RuntimeError(f"gates and biases of a state of {rows} rows of {width} must be {gates} times as wide")
        return (*(torch.empty_like(state) for _ in range(states)), input_gates.new_empty((rows, kept * width)))

    return made


def _gates(count: int, product: _Tensor, bias: _Tensor | None) -> list[_Tensor]:
    """Gates with their bias, in the accuracy in which a GPU adds them."""
    exact = torch.float32 if product.itemsize < 4 else product.dtype
    added = product.to(exact)
    return list((added if bias is None else added + bias.to(exact)).chunk(count, 1))


def _lstm_on_cpu(
    input_gates: _Tensor, hidden_gates: _Tensor, cx: _Tensor, input_bias: Any = None, hidden_bias: Any = None
) -> tuple[_Tensor, ...]:
    pairs = zip(_gates(4, input_gates, input_bias), _gates(4, hidden_gates, hidden_bias), strict=True)
    added = [a + b for a, b in pairs]
    taken, kept, new, given = added[0].sigmoid(), added[1].sigmoid(), added[2].tanh(), added[3].sigmoid()
    left = kept * cx + taken * new
    return tuple(t.to(cx.dtype) for t in (given * left.tanh(), left, torch.cat([taken, kept, new, given], 1)))


def _gru_on_cpu(
    input_gates: _Tensor, hidden_gates: _Tensor, hx: _Tensor, input_bias: Any = None, hidden_bias: Any = None
) -> tuple[_Tensor, ...]:
    (ir, iz, fresh), (hr, hz, old) = _gates(3, input_gates, input_bias), _gates(3, hidden_gates, hidden_bias)
    reset, kept = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    new = (fresh + reset * old).tanh()
    return tuple(t.to(hx.dtype) for t in (new + kept * (hx - new), torch.cat([reset, kept, new, hx.to(new.dtype), old], 1)))


_LSTM, _GRU = "aten._thnn_fused_lstm_cell.default", "aten._thnn_fused_gru_cell.default"
WITHOUT_DATA: dict[str, Callable[..., Any]] = {_LSTM: _without_data(4, LSTM_KEPT, 2), _GRU: _without_data(3, GRU_KEPT, 1)}
"""Operator -> what returns tensors like its results."""
ON_CPU: dict[str, Callable[..., Any]] = {_LSTM: _lstm_on_cpu, _GRU: _gru_on_cpu}
"""Operator -> what computes the same where there is no GPU."""
