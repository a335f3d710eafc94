"""Recurrent layers (LSTM, GRU, RNN), which a Program names whole: a GPU has one fused operator for each, a CPU another.

Their parts differ from device to device and are as many as the sequence is long, so a trace of them would replay nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.values import TensorRef

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
"""Operator -> gates of a cell: the rows of its weights in units of the hidden size."""
_CUDNN_MODE = {"rnn_relu": 0, "rnn_tanh": 1, "lstm": 2, "gru": 3}
_PARAMS = 2
"""The place of the weights among the arguments of each of these operators."""


def is_recurrent(op: str) -> bool:
    """Whether `op`, such as `aten.lstm.input`, is one of these operators on a dense batch."""
    _, name, overload = op.split(".")
    return name in GATES and overload == "input"


def is_packed(name: str, args: Sequence[Any]) -> bool:
    """Whether a call of `torch.lstm` and its like is given a packed sequence, whose lengths are values."""
    place = 1 if name == "lstm" else _PARAMS
    return len(args) > place and isinstance(args[place], torch.Tensor)


def without_data(
    input: torch.Tensor, hx: Any, params: Sequence[torch.Tensor], has_biases: bool, num_layers: int, dropout: float, train: bool,
    bidirectional: bool, batch_first: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """What such an operator returns on tensors without data: the output (T, B, D*H), or (B, T, D*H) if `batch_first`, and the
    last states of each layer. Torch's own way through the whole sequence takes seconds for that."""
    del params, has_biases, dropout, train, num_layers
    states = tuple(hx) if isinstance(hx, (list, tuple)) else (hx,)
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    batch, steps = (input.shape[0], input.shape[1]) if batch_first else (input.shape[1], input.shape[0])
    output = input.new_empty((steps, batch, width))
    if batch_first:
        output = output.transpose(0, 1)
    return (output, *(state.new_empty(state.shape) for state in states))


def sequence_length(step: Op, input: torch.Tensor) -> int:
    """How many cells of a layer run one after the other."""
    batch_first = step.args[8] if len(step.args) > 8 else step.kwargs.get("batch_first", False)
    return int(input.shape[1 if batch_first else 0])


def flatten_weights(program: Program, values: Mapping[int, torch.Tensor]) -> None:
    """Lay the weights of each recurrent layer out as one block of the GPU's memory, as `nn.Module.to` does, so that its operator
    need not copy them in every call. `values`: the Program's tensors by number, once it is constructed."""
    for step in program.forward:
        if not (isinstance(step, Op) and is_recurrent(step.op)) or len(step.args) < 9:
            continue
        refs = step.args[_PARAMS]
        numbers = [ref.number for ref in refs if isinstance(ref, TensorRef)] if isinstance(refs, (list, tuple)) else []
        weights = [values[number] for number in numbers if number in values]
        known = len(weights) == len(set(numbers)) and all(w.device.type == "cuda" for w in weights)
        if not weights or not known or len({w.dtype for w in weights}) > 1 or len({w.data_ptr() for w in weights}) < len(weights):
            continue
        _flatten(step, weights)


def _flatten(step: Op, weights: list[torch.Tensor]) -> None:
    name = step.op.split(".")[1]
    layers, bidirectional, batch_first = step.args[4], step.args[7], step.args[8]
    assert isinstance(layers, int)
    cells = layers * (2 if bidirectional else 1)
    hidden = weights[0].shape[0] // GATES[name]
    narrow = weights[1].shape[1]
    projected = 0 if narrow == hidden else narrow
    with torch.no_grad():
        torch._cudnn_rnn_flatten_weight(
            weights, len(weights) // cells, weights[0].shape[1], _CUDNN_MODE[name], hidden, projected, layers, bool(batch_first),
            bool(bidirectional),
        )  # fmt: skip
