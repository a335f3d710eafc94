"""Recurrent cells are recorded by the calls that a GPU makes, with the results of the module and the costs of those calls."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.judging.references.reference_calls import tensors_of
from rlkernel.evaluator.program.cells import WITHOUT_DATA
from rlkernel.evaluator.program.replay import Replay
from rlkernel.evaluator.program.schema import Op
from rlkernel.types import Precision

SOURCE = """
import torch
from torch import nn

B, I, H = {sizes}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.{kind}(I, H, bias={bias})

    def forward(self, x, h, c):
        return self.cell(x, {state}), c

def get_inputs():
    return [torch.randn(B, I), torch.randn(B, H), torch.randn(B, H)]

def get_init_inputs():
    return []
"""
STATE = {"LSTMCell": "(h, c)", "GRUCell": "h"}


def problem(kind: str, sizes: str, bias: bool = True) -> Any:
    return prepare(SOURCE.format(kind=kind, sizes=sizes, bias=bias, state=STATE[kind]), "cell", H200, Precision.STRICT)


@pytest.mark.parametrize("kind", STATE)
@pytest.mark.parametrize("bias", [True, False])
def test_a_cell_is_two_products_and_one_operator_that_give_what_the_module_gives(kind: str, bias: bool) -> None:
    made = problem(kind, "3, 4, 5", bias)
    names = [step.op for step in made.program.forward if isinstance(step, Op) and not step.op.startswith("aten.t.")]
    assert names == ["aten.mm.default", "aten.mm.default", f"aten._thnn_fused_{kind[:-4].lower()}_cell.default"]
    replay = Replay(made.program, torch.device("cpu"), lambda *call: None)
    model, inputs = made.small.model(3), made.small.inputs(4)
    state = replay.init([], 3)
    for name, weight in model.state_dict().items():
        state[name].copy_(weight)
    with torch.no_grad():
        found, wanted = tensors_of(replay.forward(inputs, 0)), tensors_of(model(*inputs))
    assert all(torch.allclose(f, w, atol=1e-6) for f, w in zip(found, wanted, strict=True))


def test_a_cell_costs_its_products_and_one_pass_over_the_gates() -> None:
    """By float32 without tf32: 2 * 4096 * 1024 * 2048 and half as many operations. The last kernel reads two times 4 gates, the
    biases and a state, and writes two states and 4 gates: 15 units of 4096 * 512 floats. A GRU's: two times 3 gates and a state,
    and it writes one state and 5 units."""
    rate = 0.8 * H200.fp32_flops_per_us
    for kind, gates, units in (("LSTMCell", 4, 2 * 4 + 1 + 2 + 4), ("GRUCell", 3, 2 * 3 + 1 + 1 + 5)):
        products = 2 * 4096 * (1024 + 512) * gates * 512 / rate
        moved = 4 * (units * 4096 * 512 + 2 * gates * 512) / H200.dram_bytes_per_us
        made = problem(kind, "4096, 1024, 512")
        assert not made.costs.unpriced
        assert made.costs.us == pytest.approx(3 * H200.launch_us + products + moved, rel=1e-6)


def test_a_state_of_another_width_is_refused_in_torchs_words() -> None:
    source = SOURCE.format(kind="LSTMCell", sizes="3, 4, 5", bias=True, state="(h, c[:, :2])")
    with pytest.raises(Exception, match="hidden"):
        prepare(source, "cell", H200, Precision.STRICT)


@pytest.mark.parametrize("op", WITHOUT_DATA)
def test_an_operator_refuses_what_a_gpu_refuses(op: str) -> None:
    """Gates of one row for a state of two, which a sum would broadcast."""
    gates = 4 if "lstm" in op else 3
    with pytest.raises(RuntimeError, match=f"{gates} times as wide"):
        WITHOUT_DATA[op](torch.empty(1, gates * 5), torch.empty(2, gates * 5), torch.empty(2, 5))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", STATE)
def test_a_replayed_cell_is_the_modules_bit_for_bit(kind: str) -> None:
    made = problem(kind, "4096, 1024, 512")
    replay = Replay(made.program, torch.device("cuda", 0), lambda *call: None)
    cell: Any = getattr(nn, kind)(1024, 512).cuda()
    x, h, c = (torch.randn(4096, width, device="cuda") for width in (1024, 512, 512))
    for name, weight in replay.init([], 0).items():
        weight.copy_(cell.state_dict()[name.removeprefix("cell.")])
    with torch.no_grad():
        found = tensors_of(replay.forward([x, h, c], 0))
        wanted = tensors_of((cell(x, (h, c) if kind == "LSTMCell" else h), c))
    assert all(torch.equal(f, w) for f, w in zip(found, wanted, strict=True))
