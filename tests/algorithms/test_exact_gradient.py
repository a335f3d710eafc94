"""What the estimators do on average, by summing over every ordered group of rollouts of a two-turn policy.

The policy chooses one of three paths, then one of two endings; some paths end at once. Nothing is sampled and nothing is shared
with `experiments/two_turns.py`, which is checked against this.

Legend: O outcomes of a rollout, M = O^N ordered groups, K = N rollouts, T = 2 turns, L = 1 token per turn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import pytest
import torch

from algorithms.dr_grpo import DrGRPO
from algorithms.grpo import GRPO
from algorithms.max_rl import MaxRL
from algorithms.mis import MIS
from algorithms.mrs import MRS
from algorithms.ratios import Level
from algorithms.rloo import RLOO
from algorithms.tis import TIS
from algorithms.trloo import TRLOO
from experiments.two_turns import TwoTurns, moments
from rlkernel.interfaces import Advantage, Correction, Removes
from rlkernel.training.returns import returns_to_go
from rlkernel.types import Group, Problem

PATHS, ENDINGS = 3, 2
FIRST = (0.9, 0.0, 0.3)
"""Rewards of turn 1."""
SECOND = ((0.7, 0.1), (2.0, 0.0), (0.4, 1.1))
"""Rewards of turn 2."""
LOGITS = torch.tensor([1.2, -0.3, 0.4, 0.2, -0.5, -0.6, 0.5, 0.3, 0.1], dtype=torch.float64)
"""The logits of the paths, then those of the endings path by path."""


@dataclass(frozen=True)
class Tree:
    """The outcomes: (path, ending), or (path, None) for the paths in `ends`."""

    ends: frozenset[int]

    @property
    def outcomes(self) -> list[tuple[int, int | None]]:
        found: list[tuple[int, int | None]] = []
        for path in range(PATHS):
            found += [(path, None)] if path in self.ends else [(path, ending) for ending in range(ENDINGS)]
        return found

    def log_pi(self, logits: torch.Tensor) -> torch.Tensor:
        """log_OT."""
        first = logits[:PATHS].log_softmax(0)
        second = logits[PATHS:].view(PATHS, ENDINGS).log_softmax(1)
        zero = torch.zeros((), dtype=torch.float64)
        return torch.stack([torch.stack([first[p], zero if e is None else second[p, e]]) for p, e in self.outcomes])

    def rewards(self) -> torch.Tensor:
        """rewards_OT."""
        return torch.tensor([[FIRST[p], 0.0 if e is None else SECOND[p][e]] for p, e in self.outcomes], dtype=torch.float64)

    def valid(self) -> torch.Tensor:
        """valid_OT."""
        return torch.tensor([[True, e is not None] for _, e in self.outcomes])

    def groups(self, N: int) -> torch.Tensor:
        """groups_MK: every ordered group, as outcomes."""
        return torch.tensor(list(product(range(len(self.outcomes)), repeat=N)))


ALL_GO_ON, SOME_END = Tree(frozenset()), Tree(frozenset({0}))


def true_gradient(tree: Tree) -> torch.Tensor:
    """The gradient of the expected total reward."""
    logits = LOGITS.clone().requires_grad_()
    value = (tree.log_pi(logits).sum(1).exp() * tree.rewards().sum(1)).sum()
    (gradient,) = torch.autograd.grad(value, logits)
    return gradient


def expected_gradient(tree: Tree, advantage: Advantage, N: int) -> torch.Tensor:
    """E of 1/N * sum over k, t of A_{k,t} grad log pi(choice_{k,t}), as the gradient of E with A and the weights held."""
    groups_MK = tree.groups(N)
    valid_MKT = tree.valid()[groups_MK]
    advantages_MKT = advantage(returns_to_go(tree.rewards()[groups_MK], valid_MKT, 1.0), valid_MKT)
    weight_M = tree.log_pi(LOGITS).sum(1)[groups_MK].sum(1).exp()
    assert weight_M.sum().item() == pytest.approx(1.0, abs=1e-12)
    logits = LOGITS.clone().requires_grad_()
    surrogate_M = (advantages_MKT * tree.log_pi(logits)[groups_MK]).sum((1, 2)) / N
    (gradient,) = torch.autograd.grad((weight_M * surrogate_M).sum(), logits)
    return gradient


def error(estimate: torch.Tensor, truth: torch.Tensor) -> float:
    return float((estimate - truth).norm() / truth.norm())


def angle(estimate: torch.Tensor, truth: torch.Tensor) -> float:
    return float(torch.rad2deg(torch.acos(torch.dot(estimate, truth) / estimate.norm() / truth.norm())))


def test_the_true_gradient_is_that_of_the_log_derivative_trick() -> None:
    """E of (total reward) grad log pi(rollout): nothing of the estimators is in it."""
    for tree in (ALL_GO_ON, SOME_END):
        logits = LOGITS.clone().requires_grad_()
        weight_O = tree.log_pi(LOGITS).sum(1).exp()
        (gradient,) = torch.autograd.grad((weight_O * tree.rewards().sum(1) * tree.log_pi(logits).sum(1)).sum(), logits)
        torch.testing.assert_close(gradient, true_gradient(tree), atol=1e-12, rtol=0)


@pytest.mark.parametrize("N", [1, 2, 3, 4])
@pytest.mark.parametrize("tree", [ALL_GO_ON, SOME_END], ids=["all go on", "some end"])
@pytest.mark.parametrize("advantage", [TRLOO(), RLOO()], ids=str)
def test_leave_one_out_is_unbiased(advantage: Advantage, tree: Tree, N: int) -> None:
    assert (expected_gradient(tree, advantage, N) - true_gradient(tree)).abs().max() < 1e-9


@pytest.mark.parametrize("N", [2, 3, 4])
@pytest.mark.parametrize(
    "advantage", [GRPO(std=False), DrGRPO(), GRPO(std=False, baseline="trajectory"), DrGRPO(baseline="trajectory")], ids=str
)
def test_self_inclusion_shrinks_the_gradient_by_1_over_n(advantage: Advantage, N: int) -> None:
    difference = expected_gradient(ALL_GO_ON, advantage, N) - (1 - 1 / N) * true_gradient(ALL_GO_ON)
    assert difference.abs().max() < 1e-9


@pytest.mark.parametrize("N", [2, 3, 4])
def test_where_trajectories_end_the_second_turn_shrinks_more(N: int) -> None:
    """Turn 1 still has N samples; turn 2 has fewer, and so does not shrink by the same factor."""
    truth, found = true_gradient(SOME_END), expected_gradient(SOME_END, DrGRPO(), N)
    torch.testing.assert_close(found[:PATHS], (1 - 1 / N) * truth[:PATHS], atol=1e-9, rtol=0)
    second, true_second = found[PATHS:].norm(), truth[PATHS:].norm()
    assert second < (1 - 1 / N) * true_second - 1e-3
    # Whole trajectories are always N.
    whole = expected_gradient(SOME_END, DrGRPO(baseline="trajectory"), N)
    torch.testing.assert_close(whole, (1 - 1 / N) * truth, atol=1e-9, rtol=0)


def test_the_bias_of_the_others_as_numbers() -> None:
    """N = 4: angle to the true gradient in degrees, and relative error, which for those that divide by the standard deviation or
    the mean would depend on the unit of the reward. Path 0, which ends at once, is chosen by 60 %."""
    truth = true_gradient(SOME_END)
    expected: list[tuple[Advantage, float, float | None]] = [
        (GRPO(), 31.0, None),
        (GRPO(ddof=0), 28.3, None),
        (GRPO(baseline="trajectory"), 21.4, None),
        (DrGRPO(), 13.8, 0.473),
        (TRLOO(singleton="zero"), 6.6, 0.178),
        (MaxRL(), 27.4, None),
    ]
    for advantage, degrees, relative in expected:
        found = expected_gradient(SOME_END, advantage, 4)
        assert round(angle(found, truth), 1) == degrees, advantage
        assert relative is None or round(error(found, truth), 3) == relative, advantage


def test_the_study_computes_the_same() -> None:
    """`experiments.two_turns` sums over unordered groups and has its scores written out."""
    toy = TwoTurns(torch.tensor([FIRST], dtype=torch.float64), torch.tensor([SECOND[1:]], dtype=torch.float64))
    logits = torch.cat([LOGITS[:PATHS], LOGITS[PATHS + ENDINGS :]])[None]
    true = true_gradient(SOME_END)
    # Path 0 ends, so that the logits of its endings have no gradient.
    kept = torch.cat([torch.arange(PATHS), torch.arange(PATHS + ENDINGS, len(LOGITS))])
    torch.testing.assert_close(toy.true_gradient(logits)[0], true[kept], atol=1e-12, rtol=0)
    for advantage in (GRPO(), TRLOO(), DrGRPO()):
        for N in (2, 3):
            expected = expected_gradient(SOME_END, advantage, N)[kept]
            torch.testing.assert_close(moments(toy, logits, advantage, N).mean_RP[0], expected, atol=1e-12, rtol=0)


GLITCH = PATHS + 3
"""The logit of path 1's second ending."""


def glitching(share: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits of a trained policy that hardly ever ends path 1 so (e^-12), and of rollouts that do in `share` of the cases."""
    train = LOGITS.clone()
    train[GLITCH] = train[GLITCH - 1] - 12
    rollout = train.clone()
    rollout[GLITCH] = rollout[GLITCH - 1] + torch.log(torch.tensor(share / (1 - share), dtype=torch.float64))
    return train, rollout


def weights(correction: Correction | None, tree: Tree, train: torch.Tensor, rollout: torch.Tensor) -> torch.Tensor:
    """weights_OT of the outcomes' turns, 0 where there is none."""
    valid_OT = tree.valid()
    if correction is None:
        return valid_OT.double()
    ratios_OT1 = (tree.log_pi(train) - tree.log_pi(rollout))[:, :, None]
    nobody = Group(Problem("p", 1, "train", ""), ())
    given_OT1 = correction(nobody, ratios_OT1, valid_OT[:, :, None], torch.Generator())
    return torch.where(valid_OT, given_OT1[:, :, 0].double(), 0.0)


@dataclass(frozen=True)
class Fixed:
    """A correction with these weights, one per outcome and turn, whatever the ratios."""

    weights: tuple[float, ...]
    removes: ClassVar[Removes] = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        return torch.tensor(self.weights, dtype=torch.float64).view(kept_KTL.shape)


def corrected(
    correction: Correction | None, train: torch.Tensor, rollout: torch.Tensor, N: int, tree: Tree = SOME_END
) -> tuple[torch.Tensor, torch.Tensor]:
    """E of the sum over a group's turns of w A grad log pi_train, and E of the number of its turns with a weight above 0, with
    rollouts from the policy with logits `rollout`."""
    groups_MK = tree.groups(N)
    valid_MKT = tree.valid()[groups_MK]
    advantages_MKT = TRLOO()(returns_to_go(tree.rewards()[groups_MK], valid_MKT, 1.0), valid_MKT)
    weights_MKT = weights(correction, tree, train, rollout)[groups_MK]
    weight_M = tree.log_pi(rollout).sum(1)[groups_MK].sum(1).exp()
    logits = train.clone().requires_grad_()
    total_M = (advantages_MKT * weights_MKT * tree.log_pi(logits)[groups_MK]).sum((1, 2))
    (gradient,) = torch.autograd.grad((weight_M * total_M).sum(), logits)
    return gradient, (weight_M * (weights_MKT > 0).sum((1, 2))).sum()


def large_batch(correction: Correction | None, train: torch.Tensor, rollout: torch.Tensor, N: int = 3) -> torch.Tensor:
    """What the loss of a large batch tends to: E of the sum of `corrected` over E of its number of turns."""
    total, kept = corrected(correction, train, rollout, N)
    return total / kept


LEVELS: tuple[Level, ...] = ("token", "turn", "turn_geo", "sequence", "geometric")


@pytest.mark.parametrize("level", LEVELS)
def test_mrs_moves_a_mismatched_gradient_toward_the_truth(level: Level) -> None:
    train, rollout = glitching(0.2)
    truth = large_batch(None, train, train)
    unfiltered = error(large_batch(None, train, rollout), truth)
    # The ratio of the glitch is e^-12 / 0.2 = 3e-5, that of the other ending 1 / 0.8 = 1.25.
    found = error(large_batch(MRS(level=level, low=0.5, high=2.0), train, rollout), truth)
    assert unfiltered == pytest.approx(0.357, abs=1e-3)
    # Without its second turn, a trajectory's first turn still carries the glitch's return: whole trajectories help more.
    assert found == pytest.approx(0.132 if level in ("sequence", "geometric") else 0.318, abs=1e-3)


def test_the_veto_alone_moves_it_too() -> None:
    train, rollout = glitching(0.2)
    truth = large_batch(None, train, train)
    assert error(large_batch(MRS(level="token", low=0.0, high=1e9), train, rollout), truth) == pytest.approx(0.318, abs=1e-3)
    assert error(large_batch(MRS(level="token", low=0.0, high=1e9, veto=None), train, rollout), truth) > 0.35


@pytest.mark.parametrize("level", LEVELS)
def test_without_a_mismatch_mrs_changes_nothing(level: Level) -> None:
    train, _ = glitching(0.2)
    assert torch.equal(large_batch(MRS(level=level), train, train), large_batch(None, train, train))


DRIFT = torch.tensor([0.5, -0.4, 0.1, -0.6, 0.3, 0.7, -0.5, 0.2, -0.3], dtype=torch.float64)
"""What the logits of stale rollouts have beside `LOGITS`: every probability is off, that of ending early, too."""


@pytest.mark.parametrize("N", [1, 2, 3])
@pytest.mark.parametrize("tree", [ALL_GO_ON, SOME_END], ids=["all go on", "some end"])
def test_weights_of_whole_trajectories_without_bounds_are_unbiased(tree: Tree, N: int) -> None:
    found, _ = corrected(TIS(level="sequence", high=math.inf), LOGITS, LOGITS + DRIFT, N, tree)
    assert (found / N - true_gradient(tree)).abs().max() < 1e-9
    uncorrected, _ = corrected(None, LOGITS, LOGITS + DRIFT, N, tree)
    assert (uncorrected / N - true_gradient(tree)).abs().max() > 1e-2


@pytest.mark.parametrize("tree", [ALL_GO_ON, SOME_END], ids=["all go on", "some end"])
def test_trajectories_that_span_weights_are_weighed_by_each_tokens_own(tree: Tree) -> None:
    """In-flight refresh: the paths come from weights that are two steps old, the endings from weights that are one step old.
    Ratios to each token's own weights leave no bias; ratios to the older weights alone would."""
    newer = DRIFT.clone()
    newer[PATHS:] /= 2
    tis = TIS(level="sequence", high=math.inf)
    truth = true_gradient(tree)
    assert (corrected(tis, LOGITS, LOGITS + newer, 3, tree)[0] / 3 - truth).abs().max() < 1e-9
    by_old_OT = weights(tis, tree, LOGITS, LOGITS + DRIFT)
    fixed = Fixed(tuple(by_old_OT.flatten().tolist()))
    assert error(corrected(fixed, LOGITS, LOGITS + newer, 3, tree)[0] / 3, truth) > 0.05
    spanning, old = (error(corrected(None, LOGITS, LOGITS + drift, 3, tree)[0] / 3, truth) for drift in (newer, DRIFT))
    assert spanning < old - 0.1


def test_the_bias_of_the_corrections_as_numbers() -> None:
    """N = 3, stale rollouts: angle to the true gradient in degrees, relative error, and the share of turns that are kept."""
    rollout = LOGITS + DRIFT
    truth = true_gradient(SOME_END)
    _, turns = corrected(None, LOGITS, rollout, 3)
    expected: list[tuple[Correction | None, float, float, float]] = [
        (None, 42.0, 0.676, 1.0),
        # A token's own ratio is not enough: the worst of both worlds where what follows drifts, too.
        (TIS(), 50.7, 0.775, 1.0),
        (MIS(), 64.5, 0.906, 0.973),
        # The ratios of whole trajectories are 0.83, 0.97, 3.23, 1.02 and 1.68. Truncated at 2, the third counts too little.
        (TIS(level="sequence"), 18.6, 0.331, 1.0),
        (TIS(level="sequence", high=math.inf), 0.0, 0.0, 1.0),
        (TIS(level="geometric"), 22.1, 0.422, 1.0),
        # Nothing is outside 0.5 and 5; without the third trajectory its reward is never seen.
        (MIS(level="sequence"), 0.0, 0.0, 1.0),
        (MIS(level="sequence", high=2.0), 54.4, 0.867, 0.952),
        (MRS(low=0.75, high=1.3), 62.5, 0.923, 0.952),
    ]
    for correction, degrees, relative, share in expected:
        total, kept = corrected(correction, LOGITS, rollout, 3)
        found = (angle(total, truth), error(total / 3, truth), float(kept / turns))
        assert (round(found[0], 1), round(found[1], 3), round(found[2], 3)) == (degrees, relative, share), correction


@pytest.mark.parametrize("correction", [TIS(), MIS()], ids=str)
def test_without_a_mismatch_weights_change_nothing(correction: Correction) -> None:
    train, _ = glitching(0.2)
    assert torch.equal(large_batch(correction, train, train), large_batch(None, train, train))
