"""References of which torch asks for more than shapes: they are traced, counted and judged without data all the same."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs.needs import need
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.program.schema import Op
from rlkernel.types import Precision, Problem, Status


def reference_of(forward: str, shape: str = "(8, 16, 16)", init: str = "") -> str:
    """A reference file whose forward returns an expression of `x`."""
    return f"""
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.rand(*{shape}) + 4 * torch.eye({shape}[-1])]

def get_init_inputs():
    return []
"""


CHECKED_ON_VALUES = {
    "solve": ("torch.linalg.solve(x, x[..., :2])", "aten._linalg_solve_ex.default"),
    "cholesky": ("torch.linalg.cholesky(x @ x.mT + 20 * torch.eye(16, device=x.device))", "aten.linalg_cholesky_ex.default"),
    "inverse": ("torch.inverse(x)", "aten.linalg_inv_ex.default"),
    "lu": ("torch.linalg.lu_factor(x)[0]", "aten.linalg_lu_factor_ex.default"),
    "ldl": ("torch.linalg.ldl_factor(x @ x.mT)[0]", "aten.linalg_ldl_factor_ex.default"),
    "slogdet": ("torch.linalg.slogdet(x)[1]", "aten._linalg_slogdet.default"),
    "binomial": ("torch.distributions.Binomial(10, x / 8).sample()", "aten.binomial.default"),
    "gamma": ("torch.distributions.Gamma(x, x + 1).sample()", "aten._standard_gamma.default"),
    "lists": ("torch._foreach_add([x, x], 1.0)[0]", "aten._foreach_add.Scalar"),
}


@pytest.mark.parametrize("name", CHECKED_ON_VALUES)
def test_what_torch_checks_on_values_is_no_operator_of_a_trace(name: str) -> None:
    forward, op = CHECKED_ON_VALUES[name]
    if name == "gamma" and torch.__version__ < "2.12":
        pytest.skip("torch 2.11 has no shape function for gamma's samples")
    found = prepare(reference_of(forward), "mine", H200, Precision.PYTORCH)
    names = {step.op for step in found.program.forward if isinstance(step, Op)}
    assert (op in names, found.costs.unpriced) == (True, ()), names


@pytest.mark.anyio
async def test_references_that_torch_checks_on_values_are_themselves(pool: Pool) -> None:
    for name in ("solve", "binomial", "lists"):
        source = reference_of(CHECKED_ON_VALUES[name][0])
        problem = Problem("mine/problem", 1, "validation", source)
        found = await pool.evaluate(problem, source + "\n\nclass ModelNew(Model):\n    pass\n")
        assert (found.status, found.matches) == (Status.NO_KERNEL, True), found.detail


RECURRENT = reference_of("self.layer(x)[0]", "(4, 16, 16)", "self.layer = nn.LSTM(16, 8, batch_first=True)")


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_weights_of_recurrent_layers_are_not_laid_out_in_a_trace(layer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # What torch does where it was built for GPUs: cuDNN takes the weights, and wants them in one block.
    monkeypatch.setattr(torch.backends.cudnn, "is_acceptable", lambda tensor: True)
    monkeypatch.setattr(torch, "_use_cudnn_rnn_flatten_weight", lambda: True)
    monkeypatch.setattr("torch.backends.cudnn.rnn.get_cudnn_mode", lambda mode: 2)
    source = RECURRENT.replace("LSTM", layer)
    found = prepare(source, "mine", H200, Precision.PYTORCH)
    whole = {"LSTM": "aten.lstm.input", "GRU": "aten.gru.input", "RNN": "aten.rnn_tanh.input"}[layer]
    assert whole in {step.op for step in found.program.forward if isinstance(step, Op)}
    assert whole in need(source, "mine", H200).names


@pytest.mark.parametrize(
    ("forward", "written"),
    [
        ("x[0, 0].unfold(0, 9, 1) @ x[0, 0, :9]", 8 * 9),
        ("x[0, 0].unfold(0, 4, 4) @ x[0, 0, :4]", 0),
        ("x @ x[:1].expand_as(x)", 0),
    ],
)
def test_windows_that_a_product_writes_out_are_elements_that_it_makes(forward: str, written: int) -> None:
    """A filter of 2,047 taps over 46,875 numbers is 92 million elements: its rounds took 40 s, and a longer look two minutes."""
    found = need(reference_of(forward), "windows", H200)
    assert found.made - written == found.outputs
