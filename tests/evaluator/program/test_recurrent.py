"""Recurrent layers are named whole, with the shapes, strides and costs of what runs on the device."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs.operations import flops, in_sequence
from rlkernel.evaluator.judging.costs.operator_costs import moved_bytes
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.program.recurrent import without_data
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Op
from rlkernel.types import Precision

LAYERS: dict[str, Any] = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn_tanh": nn.RNN}
SOURCE = """
import torch
from torch import nn

T, B, I, H = 7, 3, 4, 5

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.{kind}(I, H, num_layers=2, batch_first={batch_first}, bidirectional={both})

    def forward(self, x):
        return self.layer(x)[0]

def get_inputs():
    return [torch.randn({shape})]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("both", [False, True])
def test_a_layer_is_one_operator_that_gives_what_the_module_gives(kind: str, batch_first: bool, both: bool) -> None:
    source = SOURCE.format(kind=kind, batch_first=batch_first, both=both, shape="B, T, I" if batch_first else "T, B, I")
    problem = prepare(source, "recurrent", H200, Precision.STRICT)
    layers = ("aten.lstm", "aten.gru", "aten.rnn")
    names = [step.op for step in problem.program.forward if isinstance(step, Op) and step.op.startswith(layers)]
    assert names == [{"LSTM": "aten.lstm.input", "GRU": "aten.gru.input", "RNN": "aten.rnn_tanh.input"}[kind]]
    assert not problem.costs.unpriced
    replay = Replay(problem.program, torch.device("cpu"), lambda *call: None)
    model, inputs = problem.small.model(3), problem.small.inputs(4)
    state = replay.init([], 3)
    for name, weight in model.state_dict().items():
        state[name].copy_(weight)
    with torch.no_grad():
        found, wanted = replay.forward(inputs, 0), model(*inputs)
    assert torch.allclose(found, wanted, atol=1e-6)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_shapes_without_data_are_those_of_the_layer(kind: str, batch_first: bool) -> None:
    layer = LAYERS[kind](4, 5, num_layers=2, batch_first=batch_first, bidirectional=True)
    given = torch.randn(3, 7, 4) if batch_first else torch.randn(7, 3, 4)
    state = torch.zeros(4, 3, 5)
    hidden = (state, state.clone()) if kind == "lstm" else state
    output, last = layer(given, hidden)
    wanted = [output, *(last if isinstance(last, tuple) else [last])]
    found = without_data(given, hidden, layer._flat_weights, True, 2, 0.0, True, True, batch_first)
    assert [(t.shape, t.stride(), t.dtype) for t in found] == [(t.shape, t.stride(), t.dtype) for t in wanted]


def test_costs_of_a_layer() -> None:
    layer = nn.LSTM(4, 5)
    read = [torch.empty(7, 3, 4), torch.empty(1, 3, 5), torch.empty(1, 3, 5), *layer._flat_weights]
    made = [torch.empty(7, 3, 5), torch.empty(1, 3, 5), torch.empty(1, 3, 5)]
    step = Op("aten.lstm.input", (None, [], [], True, 1, 0.0, True, False, False), {}, (1, 2, 3))
    assert flops(step, read, made) == 2 * 7 * 3 * (4 * 5 * 4 + 4 * 5 * 5)  # 4 gates of 5 rows, of 4 and of 5 columns
    weights = 4 * 5 * 4 + 4 * 5 * 5 + 2 * 20
    assert moved_bytes(step, read, made) == 4 * (7 * 3 * 4 + 2 * 15 + weights + 7 * 3 * 5 + 2 * 15)
    assert in_sequence(step, read) == 7
