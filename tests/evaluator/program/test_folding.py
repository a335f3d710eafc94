"""Weights reach what `__init__` makes of them, under the reference's name, another one, or none."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.program.replay import Replay
from rlkernel.seeds import seed_generators
from tests.evaluator.trace.test_candidate import program

SEED = 5


@pytest.mark.parametrize(
    ("init", "name"),
    [
        ("self.weight = nn.Parameter(torch.randn(4, 3)); self.register_buffer('t', self.weight.detach().t().contiguous())", "t"),
        ("self.mine = nn.Parameter(torch.randn(4, 3)); self.register_buffer('t', self.mine.detach().t().contiguous())", "t"),
        ("self.register_buffer('t', nn.Parameter(torch.randn(4, 3)).detach().t().contiguous())", "t"),
        ("self.weight = nn.Parameter(torch.randn(4, 3).t().contiguous())", "weight"),
    ],
)
def test_what_is_folded_is_folded_from_the_given_weight(init: str, name: str) -> None:
    seed_generators(SEED)
    given = torch.randn(4, 3) * 2.0**26
    state = Replay(program("return x", init=init), torch.device("cpu"), lambda *call: None).init([], SEED, {"weight": given})
    assert torch.equal(state[name], given.t())


@pytest.mark.parametrize("drawn", ["torch.ones(4, 3)", "torch.randn(3, 4).t()", "torch.zeros(4, 3)"])
def test_other_numbers_stay(drawn: str) -> None:
    """Constants say nothing of where they come from, and numbers of another order are others."""
    one = program("return x", init=f"self.register_buffer('t', {drawn}.t().contiguous())")
    seed_generators(SEED)
    given = torch.full((4, 3), 7.0) if "ones" in drawn else torch.randn(4, 3)
    kept = Replay(one, torch.device("cpu"), lambda *call: None).init([], SEED)["t"]
    assert torch.equal(Replay(one, torch.device("cpu"), lambda *call: None).init([], SEED, {"weight": given})["t"], kept)


@pytest.mark.parametrize(
    ("init", "left"),
    [
        ("self.register_buffer('t', torch.randn(4, 4).t().contiguous())", False),
        ("self.mine = nn.Parameter(torch.randn(4, 4) * 0.02)", True),
        ("self.mine = nn.Parameter(torch.randn(4, 4))", True),
        ("self.mine = nn.Parameter(torch.zeros(4, 4))", True),
    ],
)
def test_a_weight_that_went_into_the_state_is_not_given_again(init: str, left: bool) -> None:
    """A square weight that is transposed has the shape of a weight, and is none. One that is scaled is the weight itself."""
    replay = Replay(program("return x", init=init), torch.device("cpu"), lambda *call: None)
    seed_generators(SEED)
    given = torch.randn(4, 4) * 2.0
    replay.init([], SEED, {"weight": given})
    assert replay.given.keys() == ({"weight"} if left else set())
