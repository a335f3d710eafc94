"""The filter accepts every shipped problem and refuses planted degenerate ones, each for its reason."""

from __future__ import annotations

import pytest

from envs.problems import load_suite
from rlkernel.errors import BrokenReference
from rlkernel.evaluator.judging.degenerate import degenerate
from rlkernel.types import Problem

TEMPLATE = """import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x, *rest):
        {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def planted(forward: str, init: str = "pass", inputs: str = "torch.randn(8, 24)") -> Problem:
    return Problem("planted", 1, "train", TEMPLATE.format(init=init, forward=forward, inputs=inputs))


@pytest.mark.parametrize("problem", load_suite(), ids=lambda problem: problem.name)
def test_every_shipped_problem_is_sound(problem: Problem) -> None:
    assert degenerate(problem) is None


def test_a_sound_problem_with_every_kind_of_input_passes() -> None:
    problem = planted(
        "return x * self.weight + rest[0][0] + rest[1] * rest[2]",
        "self.weight = nn.Parameter(torch.randn(24))",
        "torch.randn(8, 24), [torch.randn(24)], 0.5, torch.arange(24)",
    )
    assert degenerate(problem) is None


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        # Mean of a layer-normalised row is 0, whatever the input.
        (planted("return F.layer_norm(x, (24,)).mean(dim=1)"), "output 0 is within 0.0001 of zero (largest"),
        (planted("return x * 0.0"), "output 0 is within 0.0001 of zero (largest 0.0e+00): zeros would pass"),
        (planted("return (x * 1e-3).half()"), "output 0 is within 0.01 of zero (largest"),
        # Softmax sums to 1; the mean of 24 of its values is 1/24 = 0.04167.
        (planted("return torch.softmax(x, dim=1).mean(dim=1)"), "output 0 is constant: 0.04167 is within 1% of it"),
        (planted("return torch.sigmoid(x * 1e-3) + 1.0"), "output 0 is constant: 1.5 is within 1% of it"),
        (planted("return x, torch.arange(24.0)"), "output 1 does not depend on the inputs"),
        (planted("return x.log()"), "output 0 holds NaN or Inf"),
        (
            planted("return torch.exp(x)", inputs="torch.rand(8, 24) * 50.0"),
            "output 0 holds NaN or Inf when the inputs are multiplied by 2",
        ),
        (planted("return x", inputs="torch.randn(8), torch.randn(8)"), "input 1 does not matter"),
        (planted("return x + (rest[0] & False)", inputs="torch.randn(8), torch.rand(8) < 0.5"), "input 1 does not matter"),
        (planted("return x", "self.unused = nn.Parameter(torch.randn(3))"), "parameter unused does not matter"),
        # A bias of the keys shifts all scores of a query alike, which softmax ignores.
        (
            planted("return torch.softmax(x @ (x + self.b).t(), dim=1) @ x", "self.b = nn.Parameter(torch.randn(24))"),
            "parameter b does not matter",
        ),
        (
            planted("return x + self.b", "self.b = nn.Parameter(torch.zeros(24))"),
            "parameter b is all zeros: a kernel that leaves it out would pass; draw it at random",
        ),
        (planted("return self.norm(x)", "self.norm = nn.LayerNorm(24)"), "parameter norm.weight is all ones"),
        (planted("return 3"), "forward returns no tensor"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_planted_problems_are_refused_for_their_reason(problem: Problem, reason: str) -> None:
    found = degenerate(problem)
    assert found is not None
    assert found.startswith(reason)
    assert "\n" not in found


def test_neutral_parameters_are_accepted_on_request() -> None:
    problem = planted("return self.norm(x)", "self.norm = nn.LayerNorm(24)")
    assert degenerate(problem, allow_neutral=True) is None


def test_random_operators_are_no_reason_to_refuse() -> None:
    assert degenerate(planted("return F.dropout(x, 0.5)")) is None


def test_a_forward_that_raises_is_the_files_fault() -> None:
    with pytest.raises(BrokenReference, match="planted: forward raised RuntimeError on line 11: The size of tensor a"):
        degenerate(planted("return x + torch.zeros(5)"))
