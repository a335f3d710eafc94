"""Returns to go, by hand."""

from __future__ import annotations

import threading

import pytest
import torch

from algorithms.trloo import TRLOO
from rlkernel.errors import UsageError
from rlkernel.training.returns import returns_to_go, try_advantage


def test_returns_to_go() -> None:
    rewards = torch.tensor([[[1.0, 0.5, 2.0], [1.0, 4.0, 8.0]]])
    mask = torch.tensor([[[True, True, True], [True, True, False]]])
    # gamma 1: 1 + 0.5 + 2, 0.5 + 2, 2; the second ended after two turns: 1 + 4, 4.
    assert returns_to_go(rewards, mask, 1.0).tolist() == [[[3.5, 2.5, 2.0], [5.0, 4.0, 0.0]]]
    # gamma 1/2: 1 + (0.5 + 2/2)/2 = 1.75, 0.5 + 2/2 = 1.5, 2; 1 + 4/2 = 3, 4.
    assert returns_to_go(rewards, mask, 0.5).tolist() == [[[1.75, 1.5, 2.0], [3.0, 4.0, 0.0]]]
    assert returns_to_go(rewards, mask, 0.0).tolist() == [[[1.0, 0.5, 2.0], [1.0, 4.0, 0.0]]]


def test_a_void_turn_between_others_takes_time_but_adds_nothing() -> None:
    # gamma 1/2: 1 + 0 + 2/4
    found = returns_to_go(torch.tensor([[[1.0, 9.0, 2.0]]]), torch.tensor([[[True, False, True]]]), 0.5)
    assert found.tolist() == [[[1.5, 0.0, 2.0]]]


def test_returns_to_go_refuses_shapes_that_differ() -> None:
    with pytest.raises(ValueError, match=r"rewards_GKT is \(1, 2, 3\) but valid_GKT is \(1, 2, 2\)"):
        returns_to_go(torch.zeros(1, 2, 3), torch.ones(1, 2, 2, dtype=torch.bool), 1.0)


class LastTurnAlone:
    """A mistaken estimator: one number per trajectory. It counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return returns_GKT[..., -1]


class Divided:
    """A mistaken estimator: it divides by a deviation that is 0 where all trajectories have equal returns."""

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        return returns_GKT / returns_GKT.std(1, keepdim=True)


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (LastTurnAlone(), r"LastTurnAlone returned a tensor of shape \(3, 4\) for returns of shape \(3, 4, 3\)"),
        (Divided(), "Divided returned advantages that are not finite"),
    ],
)
def test_a_mistake_in_an_estimator_shows_before_a_run_begins(broken: object, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        try_advantage(broken, 4, 3)  # type: ignore[arg-type]


def test_a_trial_leaves_an_estimator_as_it_is() -> None:
    counting = LastTurnAlone()
    with pytest.raises(UsageError):
        try_advantage(counting, 2, 2)
    assert counting.calls == 0
    try_advantage(TRLOO(), 2, 1)  # a group of two, of one turn
    counting.lock = threading.Lock()  # type: ignore[attr-defined]
    try_advantage(counting, 2, 2)  # type: ignore[arg-type]
    assert counting.calls == 0
