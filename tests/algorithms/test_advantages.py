"""Golden values with their arithmetic, and properties of every registered estimator."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms import ADVANTAGES
from algorithms.grpo import GRPO
from algorithms.trloo import TRLOO
from rlkernel.interfaces import Advantage
from rlkernel.returns import returns_to_go

VARIANTS: dict[str, tuple[Any, ...]] = {
    "grpo": (GRPO(), GRPO(ddof=0), GRPO(std=False), GRPO(eps=1e-4)),
    "trloo": (TRLOO(), TRLOO(singleton="zero")),
}
EVERY = [variant for variants in VARIANTS.values() for variant in variants]


def column(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


def valid(*values: int) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.bool)[:, None]


def test_every_registered_estimator_is_tested_here() -> None:
    assert VARIANTS.keys() == ADVANTAGES.keys()
    assert all(isinstance(cls(), Advantage) and cls() in VARIANTS[name] for name, cls in ADVANTAGES.items())


# Returns [1, 0, 0, 0]: mean 1/4, centred [3/4, -1/4, -1/4, -1/4], sum of squares 9/16 + 3/16 = 3/4.
GOLDEN = [
    # std = sqrt((3/4) / 3) = 1/2: (3/4) / (1/2) = 1.5
    (GRPO(eps=0.0), [1.5, -0.5, -0.5, -0.5]),
    # std = sqrt((3/4) / 4) = 0.4330127: 0.75 / 0.4330127 = sqrt(3)
    (GRPO(eps=0.0, ddof=0), [3**0.5, -(3**0.5) / 3, -(3**0.5) / 3, -(3**0.5) / 3]),
    (GRPO(std=False), [0.75, -0.25, -0.25, -0.25]),
    # 0.75 / (0.5 + 0.5) and -0.25 / (0.5 + 0.5)
    (GRPO(eps=0.5), [0.75, -0.25, -0.25, -0.25]),
    # 1 - 0/3 = 1; 0 - 1/3
    (TRLOO(), [1.0, -1 / 3, -1 / 3, -1 / 3]),
]


@pytest.mark.parametrize(("estimator", "expected"), GOLDEN, ids=str)
def test_one_success_of_four(estimator: Advantage, expected: list[float]) -> None:
    assert estimator(column(1, 0, 0, 0), valid(1, 1, 1, 1))[:, 0].tolist() == pytest.approx(expected, abs=1e-12)


def test_default_eps_of_grpo_is_1e_6() -> None:
    assert GRPO()(column(1, 0, 0, 0), valid(1, 1, 1, 1))[0, 0].item() == pytest.approx(0.75 / 0.500001, abs=1e-12)


def test_an_ended_trajectory_leaves_the_baseline() -> None:
    # Valid returns 2, 1, 0: others of the first (1 + 0)/2, of the second (2 + 0)/2, of the fourth (2 + 1)/2.
    got = TRLOO()(column(2, 1, 99, 0), valid(1, 1, 0, 1))[:, 0]
    assert got.tolist() == [2 - 0.5, 1 - 1.0, 0.0, 0 - 1.5]
    # mean 1, centred 1, 0, -1, std (ddof 1) = sqrt(2/2) = 1
    assert GRPO(eps=0.0)(column(2, 1, 99, 0), valid(1, 1, 0, 1))[:, 0].tolist() == [1.0, 0.0, 0.0, -1.0]


def test_a_group_of_one() -> None:
    one = (column(1.5, 0), valid(1, 0))
    assert TRLOO()(*one)[:, 0].tolist() == [1.5, 0.0]
    assert TRLOO(singleton="zero")(*one)[:, 0].tolist() == [0.0, 0.0]
    assert GRPO()(*one)[:, 0].tolist() == [0.0, 0.0]
    assert GRPO(ddof=0)(*one)[:, 0].tolist() == [0.0, 0.0]


def test_an_unknown_singleton_rule_is_refused() -> None:
    with pytest.raises(ValueError, match=r"TRLOO\.singleton is 'mean'"):
        TRLOO(singleton="mean")  # type: ignore[arg-type]


def test_turns_are_separate_groups() -> None:
    returns = torch.tensor([[3.0, 1.0], [1.0, 5.0]], dtype=torch.float64)
    everywhere = torch.ones(2, 2, dtype=torch.bool)
    assert TRLOO()(returns, everywhere).tolist() == [[2.0, -4.0], [-2.0, 4.0]]


@st.composite
def groups(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns on a grid of quarters (exact in binary), and trajectories of random lengths."""
    K, T = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    returns = torch.tensor(draw(st.lists(st.integers(-8, 24), min_size=K * T, max_size=K * T)), dtype=torch.float64)
    lengths = torch.tensor(draw(st.lists(st.integers(0, T), min_size=K, max_size=K)))
    return returns.view(K, T) / 4, torch.arange(T)[None, :] < lengths[:, None]


@pytest.mark.parametrize("estimator", EVERY, ids=str)
@settings(max_examples=60, deadline=None)
@given(group=groups(), seed=st.integers(0, 2**16))
def test_properties_of_every_estimator(estimator: Advantage, group: tuple[torch.Tensor, torch.Tensor], seed: int) -> None:
    returns_KT, valid_KT = group
    K, T = returns_KT.shape
    got = estimator(returns_KT, valid_KT)
    assert got.shape == (K, T)
    assert got.dtype == torch.float64
    assert bool(got.isfinite().all())

    # Invalid turns: advantage 0, and no influence of what stands there.
    assert bool((got[~valid_KT] == 0).all())
    poisoned = torch.where(valid_KT, returns_KT, torch.nan)
    torch.testing.assert_close(estimator(poisoned, valid_KT), got)

    # Equivariant under a permutation of the trajectories.
    order = torch.randperm(K, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(estimator(returns_KT[order], valid_KT[order]), got[order])

    # A padding turn and a padding trajectory change nothing.
    padded = torch.nn.functional.pad(returns_KT, (0, 1, 0, 1), value=7.0)
    padded_valid = torch.nn.functional.pad(valid_KT, (0, 1, 0, 1), value=False)
    torch.testing.assert_close(estimator(padded, padded_valid)[:K, :T], got)

    # Centred per turn, except a group of one that keeps its return.
    several_T = valid_KT.sum(0) > 1
    assert bool((got.sum(0)[several_T].abs() < 1e-9).all())

    # A turn where all returns are equal has nothing to learn from.
    flat = estimator(torch.full_like(returns_KT, 1.25), valid_KT)
    assert bool((flat[:, several_T] == 0).all())


@settings(max_examples=60, deadline=None)
@given(group=groups())
def test_trloo_is_n_over_n_minus_1_times_the_centred_return(group: tuple[torch.Tensor, torch.Tensor]) -> None:
    returns_KT, valid_KT = group
    count_T = valid_KT.sum(0)
    several_T = count_T > 1
    scale_T = count_T[several_T] / (count_T[several_T] - 1)
    centred_KT = GRPO(std=False)(returns_KT, valid_KT)
    torch.testing.assert_close(TRLOO()(returns_KT, valid_KT)[:, several_T], scale_T * centred_KT[:, several_T])


def test_returns_to_go() -> None:
    rewards = torch.tensor([[1.0, 0.5, 2.0], [1.0, 4.0, 8.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    # gamma 1: 1 + 0.5 + 2, 0.5 + 2, 2; the second ended after two turns: 1 + 4, 4.
    assert returns_to_go(rewards, mask, 1.0).tolist() == [[3.5, 2.5, 2.0], [5.0, 4.0, 0.0]]
    # gamma 1/2: 1 + (0.5 + 2/2)/2 = 1.75, 0.5 + 2/2 = 1.5, 2; 1 + 4/2 = 3, 4.
    assert returns_to_go(rewards, mask, 0.5).tolist() == [[1.75, 1.5, 2.0], [3.0, 4.0, 0.0]]
    assert returns_to_go(rewards, mask, 0.0).tolist() == [[1.0, 0.5, 2.0], [1.0, 4.0, 0.0]]


def test_returns_to_go_refuses_shapes_that_differ() -> None:
    with pytest.raises(ValueError, match=r"rewards_KT is \(2, 3\) but valid_KT is \(2, 2\)"):
        returns_to_go(torch.zeros(2, 3), torch.ones(2, 2, dtype=torch.bool), 1.0)
