"""Golden keeps, with their arithmetic, of the rejections that do not look at log-ratios; those of MRS are with the weights."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from algorithms.flat_groups import FlatGroups
from algorithms.prs import PRS
from algorithms.void_turns import VoidTurns
from rlkernel.types import Status, Turn
from tests.algorithms.groups import group, keeps, sampled, turn


@pytest.mark.parametrize(
    ("coverage", "probability"),
    [(0.0, 0.0), (0.25, 0.0), (0.3, 0.0), (0.325, 0.25), (0.35, 0.5), (0.4, 1.0), (0.9, 1.0)],  # clamp((c - 0.3) / 0.1, 0, 1)
)
def test_probabilities_of_prs(coverage: float, probability: float) -> None:
    trajectory = group([turn(coverage=coverage), turn(coverage=coverage, status=Status.INCORRECT)]).trajectories[0]
    assert PRS().keep(trajectory) == pytest.approx([probability, 1.0])


def test_fields_of_prs() -> None:
    def keep(rejection: PRS, *turns: Turn) -> list[float]:
        return rejection.keep(group(turns).trajectories[0])

    low = turn(coverage=0.1, speedup=1.5)
    assert keep(PRS(threshold=0.05, slope=0.2), low) == pytest.approx([0.25])
    assert keep(PRS(slope=0.0), turn(coverage=0.3), turn(coverage=0.29)) == [1.0, 0.0]
    assert keep(PRS(speedup=1.5), low, replace(low, evaluation=replace(low.evaluation, speedup=1.4))) == [1.0, 0.0]
    # One launch of two steps.
    assert keep(PRS(coverage="count"), low) == [1.0]
    assert keep(PRS(decimals=2), turn(coverage=0.304), turn(coverage=0.306)) == pytest.approx([0.0, 0.1])
    # Geometric mean of 0.9 and 0.15: sqrt(0.135) = 0.3674, so (0.3674 - 0.3) / 0.1 = 0.674 for each.
    assert keep(PRS(level="geometric"), turn(coverage=0.9), turn(coverage=0.15)) == pytest.approx(2 * [0.67423], abs=1e-5)
    # An incorrect turn counts as 1e-8 there, and is itself kept: sqrt(1e-8) = 1e-4.
    failed = (turn(coverage=1.0), turn(coverage=1.0, status=Status.CRASH))
    assert keep(PRS(level="geometric"), *failed) == [0.0, 1.0]
    assert keep(PRS(level="geometric", threshold=0.0, slope=1.0), *failed) == pytest.approx([1e-4, 1.0])


def test_the_geometric_mean_of_prs_is_over_the_turns_that_are_left() -> None:
    # With its second turn, the mean of 0.9 and 0.1 is 0.3: rejected; without it, 0.9.
    of = group([turn(coverage=0.9), turn(coverage=0.1)])
    prs = PRS(level="geometric", threshold=0.31, slope=0.0)
    kept_KTL = sampled(of)
    assert not prs(of, torch.zeros(kept_KTL.shape), kept_KTL, torch.Generator()).any()
    kept_KTL[0, 1] = False
    assert prs(of, torch.zeros(kept_KTL.shape), kept_KTL, torch.Generator())[0, 0].all()
    # Nothing left: nothing to judge by but each turn's own coverage.
    assert prs.keep(of.trajectories[0], [False, False]) == [1.0, 0.0]


def test_prs_draws_once_per_turn() -> None:
    many = group(*[[turn(coverage=0.35, n=3), turn(coverage=0.325, n=2)]] * 4000)
    kept = keeps(PRS(), many)
    # A turn is kept or rejected as a whole.
    assert torch.equal(kept.any(-1), kept.all(-1))
    # Binomial, 4000 draws: standard deviation of the share below 0.008.
    assert kept[:, 0, 0].double().mean().item() == pytest.approx(0.5, abs=0.03)
    assert kept[:, 1, 0].double().mean().item() == pytest.approx(0.25, abs=0.03)
    # Independent draws: both kept in 1/8.
    assert kept[:, :, 0].all(1).double().mean().item() == pytest.approx(0.125, abs=0.03)
    assert torch.equal(keeps(PRS(), many), kept)
    assert not torch.equal(keeps(PRS(), many, seed=1), kept)


def test_coverage_that_is_unknown_is_our_own_failure() -> None:
    unknown = turn()
    unknown = replace(unknown, evaluation=replace(unknown.evaluation, coverage=None))
    with pytest.raises(ValueError, match="without time coverage"):
        keeps(PRS(), group([unknown]))


@pytest.mark.parametrize(
    ("rewards", "kept"),
    [
        ([0, 1, 0, 1.2], [True, True, False, True]),
        ([0, 0, 0], [True, True, True]),
        ([1, -0.5, 0, 0.5], [True, False, False, True]),
        # A negative reward is no success.
        ([-0.5, -0.1, 0.2, -0.1], [True, True, True, False]),
    ],
)
def test_void_turns(rewards: list[float], kept: list[bool]) -> None:
    assert keeps(VoidTurns(), group([turn(reward=r) for r in rewards]))[0, :, 0].tolist() == kept


def test_the_threshold_of_void_turns() -> None:
    rewards = [turn(reward=r) for r in (0.5, 0.6, 0.5)]
    assert keeps(VoidTurns(threshold=0.5), group(rewards))[0, :, 0].tolist() == [True, True, False]


def test_flat_groups_are_judged_by_the_last_turn() -> None:
    ends_alike = group([turn(reward=0.0), turn(reward=1.0)], [turn(reward=1.0)])
    ends_apart = group([turn(reward=1.0), turn(reward=1.0)], [turn(reward=0.0)])
    assert not keeps(FlatGroups(), ends_alike).any()
    assert keeps(FlatGroups(), ends_apart).all()
    assert keeps(FlatGroups(), group([turn()])).all()
    # Last rewards 0 and 0.1: standard deviation (ddof 1) 0.0707.
    near = group([turn(reward=0.0)], [turn(reward=0.1)])
    assert keeps(FlatGroups(std=0.07), near).all()
    assert not keeps(FlatGroups(std=0.071), near).any()
