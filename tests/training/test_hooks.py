"""What a step says of itself."""

from __future__ import annotations

from dataclasses import replace

from rlkernel.training.diagnostics import Drift, Mismatch
from rlkernel.training.hooks import StepFacts
from tests.algorithms.groups import group, turn


def test_the_numbers_of_a_step_are_shares_of_its_batch() -> None:
    facts = StepFacts(
        step=3, groups=(group([turn(1.0)], [turn(1.0)]),),
        trained_turns=3, turns=4, trained_tokens=10, tokens=40, rejected={"mrs": 1, "mrs_2": 0},
        loss=0.5, grad_norm=2.0, learning_rate=1e-6, entropy=1.5, clip_fraction=0.0, mismatch=None, drift=None,
        effective_tokens=0.2, kl_reference=0.01, turn_norms=(2.5, 1.0),
    )  # fmt: skip
    assert facts.numbers() == {
        "reward_std": 0.0, "frac_reward_zero_std": 1.0,
        "loss": 0.5, "grad_norm": 2.0, "learning_rate": 1e-6, "entropy": 1.5, "clip_fraction": 0.0, "mismatch": None,
        "approx_kl": None, "largest_ratio": None,
        "kl_k1": None, "kl_k3": None, "extreme_ratios": None, "effective_trajectories": None, "effective_tokens": 0.2,
        "kl_reference": 0.01, "grad_norm_turn_1": 2.5, "grad_norm_turn_2": 1.0,
        "kept_turns": 3 / 4, "kept_tokens": 10 / 40, "rejected_mrs": 1 / 4, "rejected_mrs_2": 0.0,
    }  # fmt: skip
    compared = replace(facts, mismatch=Mismatch(0.3, k1=-0.1, k3=0.2, extreme=0.01, effective_trajectories=0.5)).numbers()
    names = ("mismatch", "kl_k1", "kl_k3", "extreme_ratios", "effective_trajectories")
    assert [compared[name] for name in names] == [0.3, -0.1, 0.2, 0.01, 0.5]
    moved = replace(facts, drift=Drift(kl=0.02, largest_ratio=3.0)).numbers()
    assert (moved["approx_kl"], moved["largest_ratio"]) == (0.02, 3.0)
