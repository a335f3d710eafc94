"""Shapes of results that torch does not give on tensors without data, and an initialiser that never looks at what it drew."""

from __future__ import annotations

import math
import re

import pytest
import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.program.backends import function_of
from rlkernel.evaluator.program.replay import Replay, StepFailed
from rlkernel.evaluator.program.schema import Op, Program
from rlkernel.evaluator.program.values import TensorRef
from rlkernel.evaluator.program.without_data import CALLS, truncated_normal
from rlkernel.types import Precision, Status
from tests.red_team.cases import load

ARGUMENTS = {
    "aten.binomial.default": lambda: (torch.full((3, 5), 4.0), torch.rand(3, 5)),
    "aten._sample_dirichlet.default": lambda: (torch.rand(3, 5) + 0.5,),
    "aten.geqrf.default": lambda: (torch.randn(2, 6, 4),),
    "aten.bincount.default": lambda: (torch.tensor([3, 1, 3]), torch.ones(3, dtype=torch.bfloat16), 7),
    "aten._ctc_loss.Tensor": lambda: (
        torch.randn(9, 2, 5).log_softmax(2),
        torch.randint(1, 5, (2, 3)),
        torch.tensor([9, 7]),
        torch.tensor([2, 3]),
        0,
        True,
    ),
    "aten._thnn_fused_lstm_cell.default": lambda: (torch.randn(2, 20), torch.randn(2, 20), torch.randn(2, 5)),
    "aten._thnn_fused_gru_cell.default": lambda: [torch.randn(2, n).bfloat16() for n in (15, 15, 5)],
    **dict.fromkeys(
        ("aten.gru.input", "aten.rnn_tanh.input", "aten.rnn_relu.input", "aten.lstm.input"),
        None,
    ),
}


def recurrent(name: str) -> tuple[object, ...]:
    """Arguments of one layer of 4 units on 3 inputs, 5 elements long and 2 at a time."""
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    weights = [torch.randn(gates * 4, 3), torch.randn(gates * 4, 4)]
    state = torch.zeros(1, 2, 4)
    return (torch.randn(5, 2, 3), [state, state] if name == "lstm" else state, weights, False, 1, 0.0, False, False, False)


@pytest.mark.parametrize("name", sorted(CALLS))
def test_results_look_like_those_on_data(name: str) -> None:
    make = ARGUMENTS[name]
    args = recurrent(name.split(".")[1]) if make is None else make()
    known, found = function_of(name, torch.device("cpu"))(*args), CALLS[name](*args)
    pairs = list(zip(known, found, strict=True)) if isinstance(known, tuple) else [(known, found)]
    assert [(k.shape, k.dtype, k.stride()) for k, _ in pairs] == [(f.shape, f.dtype, f.stride()) for _, f in pairs]


def test_a_truncated_normal_has_its_moments_and_its_limits() -> None:
    torch.manual_seed(0)
    drawn = truncated_normal(torch.empty(100_000), 1.0, 2.0, 0.0, 2.0)
    assert (float(drawn.min()) >= 0.0, float(drawn.max()) <= 2.0) == (True, True)
    # Between -h and h standard deviations the variance is 1 - 2 h pdf(h) / (2 cdf(h) - 1); here h = 1/2.
    h, pdf = 0.5, math.exp(-0.125) / math.sqrt(2 * math.pi)
    deviation = 2.0 * math.sqrt(1 - 2 * h * pdf / math.erf(h / math.sqrt(2)))
    assert float(drawn.mean()) == pytest.approx(1.0, abs=0.01)
    assert float(drawn.std()) == pytest.approx(deviation, rel=0.01)


COUNTS = """
import torch
from torch import nn

N, K = 1 << 22, 256
SMALL = {{"N": 64}}

class Model(nn.Module):
    def forward(self, values):
        return torch.bincount(values, minlength={})

def get_inputs():
    return [torch.randint(0, K, (N,))]

def get_init_inputs():
    return []
"""


def test_counts_of_as_many_values_as_are_named_have_a_known_length() -> None:
    """Of 2^22 whole numbers of 8 bytes, and 256 counts."""
    made = prepare(COUNTS.format("K"), "counts", H200, Precision.STRICT)
    assert made.costs.us == pytest.approx(2.5 + (2**22 * 8 + 256 * 8) / 4.3e6)
    with pytest.raises(BrokenReference, match="counts: forward returns shapes that depend on values, "):
        prepare(COUNTS.format("0"), "counts", H200, Precision.STRICT)


def test_counts_of_more_values_than_are_named_fail_where_they_are_counted() -> None:
    step = Op("aten.bincount.default", (TensorRef(0),), {"minlength": 4}, (1,))
    replay = Replay(Program((), (), (), {}, (0,), (step,), TensorRef(1)), torch.device("cpu"), lambda *call: None)
    replay.init((), 0)
    assert replay.forward([torch.tensor([0, 3, 3])], 0).tolist() == [1, 0, 0, 2]
    with pytest.raises(StepFailed, match="4 is among the values, of which minlength=4 does not hold all"):
        replay.forward([torch.tensor([0, 4])], 0)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ("experts.flatten().bincount(minlength=64)", (Status.CORRECT, "")),
        (
            "torch.bincount(experts.flatten(), minlength=32)[:64]",
            (Status.RUNTIME_ERROR, "aten.bincount.default: N is among the values, of which minlength=32 does not hold all"),
        ),
        (
            "torch.bincount(experts.flatten())",
            (Status.UNTRACEABLE, "line 26: aten.bincount.default cannot be traced: its result depends on values"),
        ),
    ],
)
async def test_candidates_count_under_the_rule_of_references(pool: Pool, counts: str, found: tuple[Status, str]) -> None:
    case = load("honest")["router_counts"]
    used = "torch.bincount(experts.flatten(), minlength=64)"
    assert used in case.code
    result = await pool.evaluate(case.problem, case.code.replace(used, counts))
    highest = re.sub(r"\d+(?= is among)", "N", result.detail)  # of the values that were drawn, 63 or one less
    assert (result.status, highest) == found
