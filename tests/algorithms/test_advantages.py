"""Golden values with their arithmetic, and properties of every registered estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms import ADVANTAGES
from algorithms.dr_grpo import DrGRPO
from algorithms.grpo import GRPO
from algorithms.max_rl import MaxRL
from algorithms.reinforce_pp import ReinforcePP
from algorithms.rloo import RLOO
from algorithms.trloo import TRLOO
from rlkernel.errors import UsageError
from rlkernel.interfaces import Advantage
from rlkernel.training.returns import try_advantage

VARIANTS: tuple[Advantage, ...] = (
    *(GRPO(ddof=0), GRPO(std=False), GRPO(eps=1e-4), GRPO(baseline="trajectory"), GRPO(baseline="trajectory", std=False)),
    *(TRLOO(singleton="zero"), RLOO(singleton="zero")),
    DrGRPO(baseline="trajectory"),
    *(ReinforcePP(group_baseline=True), ReinforcePP(ddof=0)),
)
"""Registered estimators with other fields than by default."""
EVERY: list[Any] = [*(cls() for cls in ADVANTAGES.values()), *VARIANTS]
# What is in none of these three compares the turns of one group, and its advantages sum to 0 there.
NOT_CENTRED: tuple[Advantage, ...] = ()
"""Their advantages need not sum to 0, nor be 0 where all returns are equal."""
BY_TRAJECTORY: tuple[Advantage, ...] = (
    *(RLOO(), RLOO(singleton="zero"), GRPO(baseline="trajectory"), GRPO(baseline="trajectory", std=False)),
    DrGRPO(baseline="trajectory"),
)
"""One advantage per trajectory; they sum to 0 over the trajectories of a group."""
OVER_THE_BATCH: tuple[Advantage, ...] = (ReinforcePP(), ReinforcePP(group_baseline=True), ReinforcePP(ddof=0))
"""Groups influence each other; the advantages of the batch sum to 0."""
GROUPWISE_BY_TURN = [v for v in EVERY if v not in (*NOT_CENTRED, *BY_TRAJECTORY, *OVER_THE_BATCH)]


def column(*values: float) -> torch.Tensor:
    """One group of one turn."""
    return torch.tensor(values, dtype=torch.float64)[None, :, None]


def valid(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bool)[None, :, None]


@pytest.mark.parametrize("advantage", EVERY, ids=repr)
@pytest.mark.parametrize(("rollouts", "turns"), [(2, 1), (8, 3)])
def test_every_registered_estimator_passes_the_trial_before_a_run(advantage: Advantage, rollouts: int, turns: int) -> None:
    try_advantage(advantage, rollouts, turns)


def test_every_registered_estimator_implements_the_protocol() -> None:
    assert all(isinstance(estimator, Advantage) for estimator in EVERY)


# Returns [1, 0, 0, 0]: mean 1/4, centred [3/4, -1/4, -1/4, -1/4], sum of squares 9/16 + 3/16 = 3/4.
GOLDEN = [
    # std = sqrt((3/4) / 3) = 1/2: (3/4) / (1/2) = 1.5
    (GRPO(eps=0.0), [1.5, -0.5, -0.5, -0.5]),
    # std = sqrt((3/4) / 4) = 0.4330127: 0.75 / 0.4330127 = sqrt(3)
    (GRPO(eps=0.0, ddof=0), [3**0.5, -(3**0.5) / 3, -(3**0.5) / 3, -(3**0.5) / 3]),
    (GRPO(std=False), [0.75, -0.25, -0.25, -0.25]),
    # 0.75 / (0.5 + 0.5) and -0.25 / (0.5 + 0.5)
    (GRPO(eps=0.5), [0.75, -0.25, -0.25, -0.25]),
    (DrGRPO(), [0.75, -0.25, -0.25, -0.25]),
    # 1 - 0/3 = 1; 0 - 1/3
    (TRLOO(), [1.0, -1 / 3, -1 / 3, -1 / 3]),
    (RLOO(), [1.0, -1 / 3, -1 / 3, -1 / 3]),
    # 0.75 / 0.25 and -0.25 / 0.25
    (MaxRL(), [3.0, -1.0, -1.0, -1.0]),
    # the batch is this one group
    (ReinforcePP(eps=0.0), [1.5, -0.5, -0.5, -0.5]),
]


@pytest.mark.parametrize(("estimator", "expected"), GOLDEN, ids=str)
def test_one_success_of_four(estimator: Advantage, expected: list[float]) -> None:
    assert estimator(column(1, 0, 0, 0), valid(1, 1, 1, 1))[0, :, 0].tolist() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("estimator", "eps"), [(GRPO(), 1e-6), (ReinforcePP(), 1e-8), (ReinforcePP(group_baseline=True), 1e-8)], ids=str
)
def test_default_eps(estimator: Advantage, eps: float) -> None:
    got = estimator(column(1, 0, 0, 0), valid(1, 1, 1, 1))[0, 0, 0].item()
    assert got == pytest.approx(0.75 / (0.5 + eps), abs=1e-12)


def test_an_ended_trajectory_leaves_the_baseline() -> None:
    returns, mask = column(2, 1, 99, 0), valid(1, 1, 0, 1)
    # Valid returns 2, 1, 0: others of the first (1 + 0)/2, of the second (2 + 0)/2, of the fourth (2 + 1)/2.
    assert TRLOO()(returns, mask)[0, :, 0].tolist() == [2 - 0.5, 1 - 1.0, 0.0, 0 - 1.5]
    # mean 1, centred 1, 0, -1, std (ddof 1) = sqrt(2/2) = 1
    assert GRPO(eps=0.0)(returns, mask)[0, :, 0].tolist() == [1.0, 0.0, 0.0, -1.0]
    assert MaxRL()(returns, mask)[0, :, 0].tolist() == [1.0, 0.0, 0.0, -1.0]


def test_a_group_of_one() -> None:
    one = (column(1.5, 0), valid(1, 0))
    for keeps_the_return in (TRLOO(), RLOO()):
        assert keeps_the_return(*one)[0, :, 0].tolist() == [1.5, 0.0]
    for trains_nothing in (TRLOO(singleton="zero"), RLOO(singleton="zero"), GRPO(), GRPO(ddof=0), DrGRPO(), MaxRL()):
        assert trains_nothing(*one)[0, :, 0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TRLOO(singleton="mean"), r"TRLOO\.singleton is 'mean'"),  # type: ignore[arg-type]
        (lambda: RLOO(singleton="mean"), r"RLOO\.singleton is 'mean'"),  # type: ignore[arg-type]
        (lambda: GRPO(baseline="group"), r"GRPO\.baseline is 'group'"),  # type: ignore[arg-type]
        (lambda: DrGRPO(baseline="group"), r"DrGRPO\.baseline is 'group'"),  # type: ignore[arg-type]
    ],
)
def test_unknown_rules_are_refused(make: Callable[[], Advantage], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make()


def test_turns_are_separate_groups() -> None:
    returns = torch.tensor([[[3.0, 1.0], [1.0, 5.0]]], dtype=torch.float64)
    everywhere = torch.ones(1, 2, 2, dtype=torch.bool)
    assert TRLOO()(returns, everywhere).tolist() == [[[2.0, -4.0], [-2.0, 4.0]]]
    assert DrGRPO()(returns, everywhere).tolist() == [[[1.0, -2.0], [-1.0, 2.0]]]


def test_whole_trajectories_are_compared_by_their_first_valid_return() -> None:
    # Returns to go. The second trajectory ended after a turn; the third's first turn is out of its group, so that its return is
    # that of its second turn.
    returns = torch.tensor([[[6.0, 2.0], [2.0, 99.0], [99.0, 1.0]]], dtype=torch.float64)
    mask = torch.tensor([[[1, 1], [1, 0], [0, 1]]], dtype=torch.bool)
    # Trajectory returns 6, 2, 1: mean 3, deviations 3, -1, -2, std (ddof 1) = sqrt(14/2); others of each: 1.5, 3.5, 4.
    root = 7**0.5
    standardised = GRPO(eps=0.0, baseline="trajectory")(returns, mask).flatten().tolist()
    assert standardised == pytest.approx([3 / root, 3 / root, -1 / root, 0.0, 0.0, -2 / root], abs=1e-12)
    assert DrGRPO(baseline="trajectory")(returns, mask).tolist() == [[[3.0, 3.0], [-1.0, 0.0], [0.0, -2.0]]]
    assert RLOO()(returns, mask).tolist() == [[[4.5, 4.5], [-1.5, 0.0], [0.0, -3.0]]]


def test_reinforce_pp_compares_over_the_batch() -> None:
    returns = torch.tensor([[[1.0], [1.0]], [[0.0], [0.0]]], dtype=torch.float64)
    everywhere = torch.ones(2, 2, 1, dtype=torch.bool)
    # mean 1/2, std (ddof 1) = sqrt(4 * (1/4) / 3) = sqrt(1/3): 0.5 * sqrt(3)
    got = ReinforcePP(eps=0.0)(returns, everywhere).flatten().tolist()
    assert got == pytest.approx([0.75**0.5, 0.75**0.5, -(0.75**0.5), -(0.75**0.5)], abs=1e-12)
    assert GRPO()(returns, everywhere).abs().max() == 0
    assert ReinforcePP(group_baseline=True)(returns, everywhere).abs().max() == 0
    # With the group's mean taken off first, [3, 1] and [1, 1] are [1, -1] and [0, 0]: std (ddof 1) = sqrt(2/3).
    returns = torch.tensor([[[3.0], [1.0]], [[1.0], [1.0]]], dtype=torch.float64)
    got = ReinforcePP(eps=0.0, group_baseline=True)(returns, everywhere).flatten().tolist()
    assert got == pytest.approx([1.5**0.5, -(1.5**0.5), 0.0, 0.0], abs=1e-12)


def test_max_rl_refuses_negative_returns_and_has_nothing_to_learn_from_failures_alone() -> None:
    with pytest.raises(UsageError, match="never negative"):
        MaxRL()(column(1, -0.5), valid(1, 1))
    assert MaxRL()(column(1, -0.5), valid(1, 0))[0, :, 0].tolist() == [0.0, 0.0]
    assert MaxRL()(column(0, 0), valid(1, 1))[0, :, 0].tolist() == [0.0, 0.0]


@st.composite
def groups(draw: st.DrawFn, least: int = -8) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns on a grid of quarters (exact in binary), and trajectories of random lengths."""
    G, K, T = draw(st.integers(1, 3)), draw(st.integers(1, 6)), draw(st.integers(1, 4))
    returns = torch.tensor(draw(st.lists(st.integers(least, 24), min_size=G * K * T, max_size=G * K * T)), dtype=torch.float64)
    lengths = torch.tensor(draw(st.lists(st.integers(0, T), min_size=G * K, max_size=G * K))).view(G, K, 1)
    return returns.view(G, K, T) / 4, torch.arange(T) < lengths


Drawn = tuple[torch.Tensor, torch.Tensor]


def of(estimator: Advantage, drawn: Drawn) -> Drawn:
    """MaxRL is defined for returns that are not negative."""
    return (drawn[0].abs(), drawn[1]) if isinstance(estimator, MaxRL) else drawn


@pytest.mark.parametrize("estimator", EVERY, ids=str)
@settings(max_examples=30)
@given(drawn=groups(), seed=st.integers(0, 2**16))
def test_properties_of_every_estimator(estimator: Advantage, drawn: Drawn, seed: int) -> None:
    returns_GKT, valid_GKT = of(estimator, drawn)
    G, K, T = returns_GKT.shape
    got = estimator(returns_GKT, valid_GKT)
    assert got.shape == (G, K, T)
    assert got.dtype == torch.float64
    assert bool(got.isfinite().all())

    # Invalid turns: advantage 0, and no influence of what stands there.
    assert bool((got[~valid_GKT] == 0).all())
    poisoned = torch.where(valid_GKT, returns_GKT, torch.nan)
    torch.testing.assert_close(estimator(poisoned, valid_GKT), got)

    # Equivariant under a permutation of the trajectories, and of the groups.
    generator = torch.Generator().manual_seed(seed)
    order, of_groups = torch.randperm(K, generator=generator), torch.randperm(G, generator=generator)
    torch.testing.assert_close(estimator(returns_GKT[:, order], valid_GKT[:, order]), got[:, order])
    torch.testing.assert_close(estimator(returns_GKT[of_groups], valid_GKT[of_groups]), got[of_groups])

    # A padding turn, a padding trajectory and a padding group change nothing.
    padded = torch.nn.functional.pad(returns_GKT, (0, 1, 0, 1, 0, 1), value=7.0)
    padded_valid = torch.nn.functional.pad(valid_GKT, (0, 1, 0, 1, 0, 1), value=False)
    torch.testing.assert_close(estimator(padded, padded_valid)[:G, :K, :T], got)

    # Where all returns are equal, there is nothing to learn from, unless a sample is alone.
    flat = estimator(torch.full_like(returns_GKT, 1.25), valid_GKT)
    several_G1T = valid_GKT.sum(1, keepdim=True) > 1
    if estimator not in (*BY_TRAJECTORY, *NOT_CENTRED):
        assert bool((flat[several_G1T.expand_as(flat)] == 0).all()), uncentred(estimator)


@pytest.mark.parametrize("estimator", GROUPWISE_BY_TURN, ids=str)
@settings(max_examples=30)
@given(drawn=groups())
def test_a_turn_of_several_is_centred(estimator: Advantage, drawn: Drawn) -> None:
    check_centred(estimator, *of(estimator, drawn))


def check_centred(estimator: Advantage, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> None:
    several_GT = valid_GKT.sum(1) > 1
    assert bool((estimator(returns_GKT, valid_GKT).sum(1)[several_GT].abs() < 1e-9).all()), uncentred(estimator)


def uncentred(estimator: Advantage) -> str:
    """What a reader of a failure is told to do."""
    return (
        f"{estimator} is not centred over the group of a turn: if that is meant, name it in NOT_CENTRED (or in BY_TRAJECTORY or "
        "OVER_THE_BATCH) at the top of this file"
    )


@dataclass(frozen=True)
class Plain:
    """The return itself, without a baseline."""

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        return torch.where(valid_GKT, returns_GKT, 0.0)


def test_an_estimator_that_is_not_centred_is_told_where_to_say_so() -> None:
    with pytest.raises(AssertionError, match=r"^Plain\(\) is not centred .* name it in NOT_CENTRED .* at the top of this file"):
        check_centred(Plain(), column(1, 0, 0, 0), valid(1, 1, 1, 1))


@pytest.mark.parametrize("estimator", GROUPWISE_BY_TURN, ids=str)
@settings(max_examples=30)
@given(drawn=groups())
def test_a_turn_is_judged_among_those_who_reached_it(estimator: Advantage, drawn: Drawn) -> None:
    """Groups shrink with the turn where trajectories end early: each turn has the advantages of the group that is left."""
    returns_GKT, valid_GKT = of(estimator, drawn)
    got = estimator(returns_GKT, valid_GKT)
    G, _, T = returns_GKT.shape
    for g in range(G):
        for t in range(T):
            left = valid_GKT[g, :, t]
            if left.any():
                alone = estimator(returns_GKT[g, left, t][None, :, None], torch.ones(1, int(left.sum()), 1, dtype=torch.bool))
                torch.testing.assert_close(got[g, left, t], alone[0, :, 0])


@pytest.mark.parametrize("estimator", OVER_THE_BATCH, ids=str)
@settings(max_examples=30)
@given(drawn=groups())
def test_the_batch_is_centred(estimator: Advantage, drawn: Drawn) -> None:
    assert abs(estimator(*drawn).sum().item()) < 1e-8


@pytest.mark.parametrize("estimator", BY_TRAJECTORY, ids=str)
@settings(max_examples=30)
@given(drawn=groups())
def test_trajectories_are_centred_and_have_one_advantage(estimator: Advantage, drawn: Drawn) -> None:
    returns_GKT, valid_GKT = drawn
    got = estimator(returns_GKT, valid_GKT)
    one_GK = got.abs().amax(-1) * got.sum(-1).sign()
    torch.testing.assert_close(got, torch.where(valid_GKT, one_GK[..., None], 0.0))
    several_G = valid_GKT.any(-1).sum(1) > 1
    assert bool((one_GK.sum(1)[several_G].abs() < 1e-9).all())


@pytest.mark.parametrize("estimator", [v for v in EVERY if v not in OVER_THE_BATCH], ids=str)
@settings(max_examples=30)
@given(drawn=groups())
def test_groups_do_not_influence_each_other(estimator: Advantage, drawn: Drawn) -> None:
    returns_GKT, valid_GKT = of(estimator, drawn)
    alone = [estimator(returns_GKT[g : g + 1], valid_GKT[g : g + 1]) for g in range(len(returns_GKT))]
    torch.testing.assert_close(estimator(returns_GKT, valid_GKT), torch.cat(alone))


@settings(max_examples=30)
@given(drawn=groups())
def test_trloo_is_n_over_n_minus_1_times_the_centred_return(drawn: Drawn) -> None:
    returns_GKT, valid_GKT = drawn
    count_G1T = valid_GKT.sum(1, keepdim=True)
    several = (count_G1T > 1).expand_as(valid_GKT)
    scaled = count_G1T / (count_G1T - 1).clamp(min=1) * DrGRPO()(returns_GKT, valid_GKT)
    torch.testing.assert_close(TRLOO()(returns_GKT, valid_GKT)[several], scaled[several])


@settings(max_examples=30)
@given(drawn=groups())
def test_dr_grpo_is_grpo_without_the_standard_deviation(drawn: Drawn) -> None:
    assert torch.equal(DrGRPO()(*drawn), GRPO(std=False)(*drawn))
