"""A module of a reference, its calls and the same in float64: state goes on in both, and only what changes is copied."""

from __future__ import annotations

import random

import pytest
import torch

from rlkernel.evaluator.judging.construction import Construction
from rlkernel.evaluator.judging.references.plan import Terms
from rlkernel.evaluator.messages.judgement import Stress
from rlkernel.reference import load_reference
from rlkernel.types import Precision

NORMED = """
import torch
from torch import nn

CALLS = [0]

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        CALLS[0] += 1
        return self.norm({})

def get_inputs():
    return [torch.rand(16, 8)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("inside", "exactly"), [("x", 1), ("x @ x.T @ x", 3)])
def test_state_and_outputs_are_measured_in_the_same_calls(inside: str, exactly: int) -> None:
    reference = load_reference(NORMED.format(inside), small=False)
    made = Construction(reference, Terms(Precision.PYTORCH), random.Random(0))
    mean = torch.zeros(8, dtype=torch.float64)
    for again in range(2):
        one = made.round(Stress.NONE)
        # The call; in float64 as it is, and where there are products with their operands rounded, and cut off.
        assert reference.namespace["CALLS"] == [(again + 1) * (1 + exactly)]
        assert one.products == (exactly == 3)
        x = one.inputs[0].double()
        mean = 0.9 * mean + 0.1 * (x if exactly == 1 else x @ x.T @ x).mean(0)
        found, allowed = one.expected.state["norm.running_mean"]
        assert torch.allclose(found.double(), mean, rtol=1e-6)
        assert torch.allclose(made.exact_model.state_dict()["norm.running_mean"], mean, rtol=1e-14), "it goes on in float64"
        assert 0.0 < allowed.norm < 3e-3


def test_a_copy_in_float64_shares_what_a_call_leaves_as_it_is() -> None:
    made = Construction(load_reference(NORMED.format("x @ x.T @ x"), small=False), Terms(Precision.PYTORCH), random.Random(0))
    one = made.round(Stress.NONE)
    before = {name: tensor.clone() for name, tensor in made.exact_model.state_dict().items()}
    copied = made.copied().state_dict()
    shared = {name for name, tensor in made.exact_model.state_dict().items() if tensor.data_ptr() == copied[name].data_ptr()}
    assert shared == {"norm.weight", "norm.bias"}, "the statistics and their counter are changed by each call"
    assert made.exactly(one.inputs, one.forward_seed) is not None
    assert all(torch.equal(tensor, before[name]) for name, tensor in made.exact_model.state_dict().items())


def test_a_module_that_is_called_again_is_given_no_weights_anew() -> None:
    made = Construction(load_reference(NORMED.format("x"), small=False), Terms(Precision.PYTORCH), random.Random(0))
    first, second = made.round(Stress.NONE), made.round(Stress.NONE)
    assert set(first.state) == {"norm.weight", "norm.bias", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert torch.equal(first.state["norm.running_mean"], torch.zeros(8)), "as they were before the call"
    assert (second.again, second.state) == (True, {})


WRITTEN = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, a, b, out):
        out.copy_(a @ b)

def get_inputs():
    return [torch.randn(32, 64), torch.randn(64, 32), torch.zeros(32, 32)]

def get_init_inputs():
    return []
"""


def test_an_argument_that_forward_changes_is_allowed_what_an_output_is() -> None:
    made = Construction(load_reference(WRITTEN, small=False), Terms(Precision.PYTORCH), random.Random(0))
    one = made.round(Stress.NONE)
    ((place, allowed),) = one.expected.written.items()
    assert place == 2
    assert 2e-4 < allowed.norm < 3e-3, "what tf32 makes of a product"
    assert one.products
    (tensor, same) = one.expected.made[0]
    assert torch.equal(tensor, one.inputs[0] @ one.inputs[1]) and same == allowed
    (exact,) = made.exactly(one.inputs, one.forward_seed) or []
    assert torch.allclose(exact, one.inputs[0].double() @ one.inputs[1].double())


WAVES = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, gate):
        return {}

def get_inputs():
    return [torch.randn(64, 64), torch.randn(64, 64, dtype=torch.{})]

def get_init_inputs():
    return []
"""


def allowed(body: str, gate: str) -> float:
    reference = load_reference(WAVES.format(body, gate), small=False)
    return Construction(reference, Terms(Precision.STRICT), random.Random(0)).round(Stress.NONE).expected.allowed[0].norm


def test_a_coarse_input_keeps_no_finer_one_from_being_moved() -> None:
    """A multiple of 4096 is exact, and so is its sine but for 1e-7. Half of float32's resolution moves x by 6e-8 at most, so that
    the angle moves by 4096 * 6e-8 / sqrt(3) on average, as does a wave about it: 1.4e-4, of which 8 times are allowed."""
    wave = "torch.sin(4096.0 * x)"
    assert allowed(f"{wave} * gate", "float32") == pytest.approx(8 * 1.4e-4, rel=0.1)
    assert allowed(f"{wave} * gate.float()", "bfloat16") == pytest.approx(8 * 1.4e-4, rel=0.1)
    assert allowed("torch.sin(4.0 * gate.float())", "bfloat16") == 5e-5, "the floor: what bfloat16 says is exact in float32"
