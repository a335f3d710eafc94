"""Hand-made trajectories to exact tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from algorithms.grpo import GRPO
from algorithms.mrs import MRS
from algorithms.reinforce_pp import ReinforcePP
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from algorithms.void_turns import VoidTurns
from rlkernel.errors import UsageError
from rlkernel.interfaces import Correction, Decode, Removes
from rlkernel.training.batch import Batch, assemble, log_ratios, pad_rows
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn

PAD = 9
PROBLEM = Problem(name="level1/relu", level=1, split="train", source="")


def turn(context: tuple[int, ...], sampled: tuple[int, ...], reward: float) -> Turn:
    completion = Completion(sampled, tuple(-float(token) / 10 for token in sampled), "", "stop")
    return Turn(context, completion, None, Evaluation(Status.NO_CODE, ""), reward, "")


def trajectory(*turns: Turn) -> Trajectory:
    return Trajectory(PROBLEM, turns)


# Two trajectories of one problem; the second ends after its first turn.
GROUP = Group(
    PROBLEM,
    (
        trajectory(turn((1, 2), (3, 4), 1.0), turn((5,), (6, 7), 0.5)),
        trajectory(turn((1, 2), (8,), 0.0)),
    ),
)
# One problem more, with a shorter prompt.
OTHER = Group(PROBLEM, (trajectory(turn((1,), (3,), 2.0)), trajectory(turn((1,), (4, 5), 0.0))))


@dataclass(frozen=True)
class RejectTurns:
    """A test double: rejects the given (k, t) of every group, and remembers what it was shown."""

    rejected: tuple[tuple[int, int], ...]
    seen: list[tuple[list[list[list[float]]], list[list[list[bool]]]]]
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        self.seen.append((log_ratios_KTL.tolist(), kept_KTL.tolist()))
        keep = torch.ones(kept_KTL.shape, dtype=torch.bool)
        for k, t in self.rejected:
            keep[k, t] = False
        return keep


@dataclass(frozen=True)
class RejectFirstTokens:
    """A test double: of every turn."""

    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        keep = torch.ones(kept_KTL.shape, dtype=torch.bool)
        keep[:, :, 0] = False
        return keep


@dataclass(frozen=True)
class WeighTokens:
    """A test double: the given weight for every token, another for first tokens; or one per turn, which nobody asked for."""

    first: float
    others: float
    per_turn: bool = False
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = False

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        weights = torch.full(kept_KTL.shape, self.others)
        weights[:, :, 0] = self.first
        return weights[:, :, 0] if self.per_turn else weights


@dataclass(frozen=True)
class TwoRewards:
    """A test double: a credit with two rewards, the turn's own and its negative half, for its first and its other tokens."""

    def rewards(self, turn: Turn) -> tuple[float, ...]:
        return turn.reward, -turn.reward / 2

    def __call__(self, turn: Turn, advantages: Sequence[float], decode: Decode) -> torch.Tensor:
        first, others = advantages
        return torch.tensor([first, *[others] * (len(turn.completion.token_ids) - 1)])


def build(*groups: Group, **kwargs: object) -> Batch:
    defaults: dict[str, object] = {"advantage": TRLOO(), "credit": UniformCredit(), "gamma": 1.0, "decode": str}
    return assemble(groups, pad_rows(groups, PAD), **{**defaults, **kwargs})  # type: ignore[arg-type]


def test_rows_are_concatenated_padded_and_masked() -> None:
    tokens = pad_rows((GROUP, OTHER), PAD)
    assert tokens.prompt_ids_BP.tolist() == [[1, 2], [1, 2], [PAD, 1], [PAD, 1]]
    assert tokens.prompt_mask_BP.tolist() == [[1, 1], [1, 1], [0, 1], [0, 1]]
    # 3, 4 sampled, 5 feedback, 6, 7 sampled.
    assert tokens.completion_ids_BC.tolist() == [
        [3, 4, 5, 6, 7],
        [8, PAD, PAD, PAD, PAD],
        [3, PAD, PAD, PAD, PAD],
        [4, 5, PAD, PAD, PAD],
    ]
    assert tokens.completion_mask_BC.tolist() == [[1] * 5, [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]
    assert tokens.policy_mask_BC.tolist() == [[1, 1, 0, 1, 1], [1, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]
    torch.testing.assert_close(tokens.rollout_logprobs_BC[0], torch.tensor([-0.3, -0.4, 0.0, -0.6, -0.7]))
    assert tokens.rows[0].spans == ((0, 2), (3, 5))


def test_advantages_are_per_turn() -> None:
    # Returns to go: first trajectory 1 + 0.5 = 1.5 and 0.5; second 0. TRLOO, turn 1: 1.5 - 0 and 0 - 1.5; turn 2 has one
    # trajectory: its return, 0.5.
    batch = build(GROUP)
    assert batch.advantages_BC.tolist() == [[1.5, 1.5, 0.0, 0.5, 0.5], [-1.5, 0.0, 0.0, 0.0, 0.0]]
    assert batch.loss_mask_BC.tolist() == [[1, 1, 0, 1, 1], [1, 0, 0, 0, 0]]
    assert (batch.trained_turns, batch.turns) == (3, 3)


def test_gamma_discounts_the_later_turn() -> None:
    # Turn 1: 1 + 0.5 * 0.5 = 1.25 against 0.
    assert build(GROUP, gamma=0.5).advantages_BC[:, 0].tolist() == [1.25, -1.25]


def test_groups_do_not_mix() -> None:
    # OTHER: 2 - 0 and 0 - 2.
    batch = build(GROUP, OTHER)
    assert batch.advantages_BC[2:].tolist() == [[2.0, 0.0, 0.0, 0.0, 0.0], [-2.0, -2.0, 0.0, 0.0, 0.0]]
    # GRPO without the standard deviation: returns 1.5 and 0 around 0.75; 0.5 around itself.
    grpo = build(GROUP, OTHER, advantage=GRPO(std=False))
    assert grpo.advantages_BC[:2].tolist() == [[0.75, 0.75, 0.0, 0.0, 0.0], [-0.75, 0.0, 0.0, 0.0, 0.0]]


def rejecting(*rejections: Correction, logprobs: torch.Tensor | None = None) -> Batch:
    given = torch.zeros(2, 5) if logprobs is None else logprobs
    return build(GROUP, corrections=rejections, train_logprobs_BC=given, generator=torch.Generator())


def test_a_rejected_turn_leaves_the_loss_and_the_denominator_but_not_the_baseline() -> None:
    reject = RejectTurns(rejected=((0, 0),), seen=[])
    batch = rejecting(reject)
    assert batch.loss_mask_BC.tolist() == [[0, 0, 0, 1, 1], [1, 0, 0, 0, 0]]
    assert (batch.trained_turns, batch.turns, batch.rejected) == (2, 3, {"rejectturns": 1})
    assert batch.advantages_BC[1, 0].item() == -1.5


def test_a_rejection_sees_log_ratios_and_which_are_samples() -> None:
    reject = RejectTurns(rejected=(), seen=[])
    rejecting(reject, logprobs=torch.arange(10.0).view(2, 5))
    ((ratios, sampled),) = reject.seen
    # Training 0 .. 4 and 5 .. 9; at sampling time, minus a tenth of the token: 3, 4, (5), 6, 7 and 8.
    expected = torch.tensor([[[0.3, 1.4], [3.6, 4.7]], [[5.8, 0.0], [0.0, 0.0]]])
    torch.testing.assert_close(torch.tensor(ratios), expected)
    assert sampled == [[[True, True], [True, True]], [[True, False], [False, False]]]


def test_a_rejected_turn_may_leave_its_group() -> None:
    # Without the second trajectory's turn, the first one is alone and keeps its return, 1 + 0.5.
    batch = rejecting(RejectTurns(((1, 0),), [], removes="baseline"))
    assert batch.advantages_BC.tolist() == [[1.5, 1.5, 0.0, 0.5, 0.5], [0.0, 0.0, 0.0, 0.0, 0.0]]
    assert batch.loss_mask_BC.tolist() == [[1, 1, 0, 1, 1], [0, 0, 0, 0, 0]]


def test_only_a_void_reward_leaves_the_return_of_earlier_turns() -> None:
    # The second turn's 0.5 still counts for the first, 1.5 - 0, unless the rejection removes it from the return: 1 - 0.
    for removes, first in (("loss", 1.5), ("baseline", 1.5), ("return", 1.0)):
        batch = rejecting(RejectTurns(((0, 1),), [], removes=removes))  # type: ignore[arg-type]
        assert batch.advantages_BC[:, 0].tolist() == [first, -first]
        assert batch.loss_mask_BC[0].tolist() == [1, 1, 0, 0, 0]


def test_rejected_tokens_leave_the_loss_and_their_turn_stays_while_it_has_others() -> None:
    batch = rejecting(RejectFirstTokens(removes="baseline"))
    # The second trajectory's only token is gone, and with it its turn.
    assert batch.loss_mask_BC.tolist() == [[0, 1, 0, 0, 1], [0, 0, 0, 0, 0]]
    assert (batch.trained_turns, batch.turns, batch.rejected) == (2, 3, {"rejectfirsttokens": 1})
    assert batch.advantages_BC[0].tolist() == [1.5, 1.5, 0.0, 0.5, 0.5]


def test_weights_multiply_and_the_denominator_counts_what_is_above_0() -> None:
    batch = rejecting(WeighTokens(0.5, 2.0), RejectTurns(((1, 0),), []), WeighTokens(0.25, 1.5))
    # 0.5 * 0.25 for first tokens, 2 * 1.5 for others; the second trajectory's turn is rejected.
    assert batch.weights_BC.tolist() == [[0.125, 3.0, 0.0, 0.125, 3.0], [0.0] * 5]
    assert batch.loss_mask_BC.tolist() == [[1, 1, 0, 1, 1], [0] * 5]
    # Two turns of the three, whatever they weigh, and advantages as they were.
    assert (batch.trained_turns, batch.rejected) == (2, {"weightokens": 0, "rejectturns": 1, "weightokens_2": 0})
    assert batch.advantages_BC.tolist() == [[1.5, 1.5, 0.0, 0.5, 0.5], [-1.5, 0.0, 0.0, 0.0, 0.0]]
    assert rejecting().weights_BC.tolist() == [[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0, 0.0]]


def test_a_weight_of_0_rejects_with_all_that_the_correction_removes() -> None:
    # First tokens weigh 0, so that the second trajectory's only turn leaves its group: the first keeps its return, 1 + 0.5.
    batch = rejecting(WeighTokens(0.0, 0.5, removes="baseline"))
    assert batch.weights_BC.tolist() == [[0.0, 0.5, 0.0, 0.0, 0.5], [0.0] * 5]
    assert (batch.trained_turns, batch.rejected) == (2, {"weightokens": 1})
    assert batch.advantages_BC[0].tolist() == [1.5, 1.5, 0.0, 0.5, 0.5]


def test_a_correction_sees_what_those_before_it_left_not_what_they_weigh() -> None:
    seen = RejectTurns((), [])
    rejecting(WeighTokens(0.0, 0.5), seen)
    assert [kept for _, kept in seen.seen] == [[[[False, True], [False, True]], [[False, False], [False, False]]]]


@pytest.mark.parametrize("weight", [-0.5, float("inf"), float("nan")])
def test_weights_that_would_train_as_nonsense_name_their_class(weight: float) -> None:
    with pytest.raises(UsageError, match="WeighTokens returned weights that are negative or not finite"):
        rejecting(WeighTokens(weight, 1.0))
    # Padding may hold anything: OTHER has turns of one and of two tokens.
    padded = Group(PROBLEM, (trajectory(turn((1,), (3,), 2.0)), trajectory(turn((1,), (4,), 0.0))))
    assert build(padded, corrections=(WeighTokens(1.0, weight),), generator=torch.Generator()).trained_turns == 2


def test_weights_of_a_wrong_shape_name_their_class() -> None:
    with pytest.raises(UsageError, match=r"WeighTokens returned a tensor of shape \(2, 2\) for tokens of shape \(2, 2, 2\)"):
        rejecting(WeighTokens(1.0, 1.0, per_turn=True))


def test_rejections_are_composed_by_and_and_counted_apart() -> None:
    batch = rejecting(RejectTurns(((0, 0),), []), RejectTurns(((1, 0), (0, 0)), []), RejectFirstTokens())
    assert batch.loss_mask_BC.tolist() == [[0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]
    assert batch.trained_turns == 1
    # One, two, and the turn of one token.
    assert batch.rejected == {"rejectturns": 1, "rejectturns_2": 2, "rejectfirsttokens": 1}


def test_a_rejection_sees_what_those_before_it_kept() -> None:
    first, second = RejectTurns(((0, 1),), []), RejectTurns((), [])
    rejecting(first, RejectFirstTokens(), second)
    everything = [[[True, True], [True, True]], [[True, False], [False, False]]]
    assert [sampled for _, sampled in first.seen] == [everything]
    # Without the second turn of the first trajectory, and without first tokens.
    assert [sampled for _, sampled in second.seen] == [[[[False, True], [False, False]], [[False, False], [False, False]]]]
    # The log-ratios are those of all tokens.
    assert second.seen[0][0] == first.seen[0][0]


def test_the_mean_of_mrs_is_over_the_tokens_that_are_left() -> None:
    # d is 0 but in the second turn, where it is 1 per token: over the trajectory, the mean is (0 + 0 + 1 + 1) / 4.
    logprobs = pad_rows((GROUP,), PAD).rollout_logprobs_BC + torch.tensor([[0.0, 0.0, 0.0, 1.0, 1.0], [0.0] * 5])
    mrs, void = MRS(veto=None), RejectTurns(((0, 1),), [])
    assert rejecting(mrs, logprobs=logprobs).loss_mask_BC.tolist() == [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert rejecting(void, mrs, logprobs=logprobs).loss_mask_BC.tolist() == [[1, 1, 0, 0, 0], [1, 0, 0, 0, 0]]
    assert rejecting(mrs, void, logprobs=logprobs).loss_mask_BC.tolist() == [[0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]


def test_what_a_later_rejection_says_of_a_rejected_turn_counts() -> None:
    # The reward of the void turn leaves the return, 1 - 0, also where its tokens are gone already.
    void = RejectTurns(((0, 1),), [], removes="return")
    batch = rejecting(RejectTurns(((0, 1),), []), void)
    assert batch.advantages_BC[:, 0].tolist() == [1.0, -1.0]
    assert batch.rejected == {"rejectturns": 1, "rejectturns_2": 1}


def test_whoever_takes_the_last_token_of_a_turn_rejects_it() -> None:
    # MRS comes when two turns have one token each, whose ratios are too large, and the third has none that it could judge.
    logprobs = pad_rows((GROUP,), PAD).rollout_logprobs_BC + 1.0
    mrs = MRS(level="token", veto=None, removes="baseline")
    batch = rejecting(RejectFirstTokens(), mrs, logprobs=logprobs)
    assert batch.rejected == {"rejectfirsttokens": 1, "mrs": 2}
    assert batch.advantages_BC.abs().max() == 0


def test_rejections_without_training_logprobs_are_refused() -> None:
    with pytest.raises(ValueError, match="pass train_logprobs_BC"):
        build(GROUP, corrections=(RejectTurns((), []),), generator=torch.Generator())


def test_rejections_that_do_not_compare_need_no_training_logprobs() -> None:
    # 1 and 0.5 | 0 are the rewards: the second turn is void, and the ratios that nobody asked for are 0.
    void = VoidTurns(threshold=0.6)
    batch, compared = build(GROUP, corrections=(void,), generator=torch.Generator()), rejecting(void)
    assert batch.rejected == compared.rejected == {"voidturns": 1}
    assert torch.equal(batch.loss_mask_BC, compared.loss_mask_BC)
    assert torch.equal(batch.advantages_BC, compared.advantages_BC)
    ratios_KTL, _ = log_ratios(pad_rows((GROUP,), PAD).rows, None, 2)
    assert not ratios_KTL.any()
    with pytest.raises(ValueError, match="pass a generator"):
        build(GROUP, corrections=(void,))


def test_a_credit_has_an_advantage_per_reward() -> None:
    # Rewards 1, 0.5 | 0: advantages 1.5, 0.5 | -1.5 as before. Their negative halves: -0.75, -0.25 | 0.75.
    batch = build(GROUP, credit=TwoRewards())
    assert batch.advantages_BC.tolist() == [[1.5, -0.75, 0.0, 0.5, -0.25], [-1.5, 0.0, 0.0, 0.0, 0.0]]


def test_groups_of_several_sizes_are_padded() -> None:
    # Alone in its group, the trajectory keeps its returns.
    alone = Group(PROBLEM, GROUP.trajectories[:1])
    batch = build(alone, OTHER)
    assert batch.advantages_BC.tolist() == [[1.5, 1.5, 0.0, 0.5, 0.5], [2.0, 0.0, 0.0, 0.0, 0.0], [-2.0, -2.0, 0.0, 0.0, 0.0]]


def test_one_batch_is_one_call_of_the_advantage() -> None:
    # REINFORCE++ compares over the batch: returns 1.5, 0.5 | 0 and 2 | 0: mean 0.8, squares 0.49 + 0.09 + 0.64 + 1.44 + 0.64.
    batch = build(GROUP, OTHER, advantage=ReinforcePP(eps=0.0))
    std = (3.3 / 4) ** 0.5
    assert batch.advantages_BC[:, 0].tolist() == pytest.approx([0.7 / std, -0.8 / std, 1.2 / std, -0.8 / std])


@dataclass(frozen=True)
class Broken:
    """A test double: advantages of another shape, or divided by 0."""

    shape: bool

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        return returns_GKT[:, :, :1] if self.shape else returns_GKT / 0.0


def test_advantages_of_a_wrong_shape_or_not_finite_name_their_class() -> None:
    with pytest.raises(UsageError, match=r"Broken returned a tensor of shape \(1, 2, 1\) for returns of shape \(1, 2, 2\)"):
        build(GROUP, advantage=Broken(shape=True))
    with pytest.raises(UsageError, match="Broken returned advantages that are not finite"):
        build(GROUP, advantage=Broken(shape=False))


@dataclass(frozen=True)
class BrokenCredit:
    """A test double: values of another shape, not finite, or none; and rewards of which a turn with reward 1 has more."""

    given: object
    more: bool = False

    def rewards(self, turn: Turn) -> tuple[float, ...]:
        return (0.0, 0.0) if self.more and turn.reward == 1.0 else (0.0,)

    def __call__(self, turn: Turn, advantages: Sequence[float], decode: Decode) -> Any:
        return self.given


@pytest.mark.parametrize(
    ("credit", "line"),
    [
        # One value would go to all tokens.
        (
            BrokenCredit(torch.ones(1)),
            r"returned a tensor of shape \(1,\) for a turn of 2 tokens: a credit gives a tensor of shape",
        ),
        (BrokenCredit(torch.tensor(1.0)), r"returned a tensor of shape \(\) for a turn of 2 tokens"),
        (BrokenCredit([1.0, 1.0]), "returned a list for a turn of 2 tokens"),
        (BrokenCredit(torch.tensor([1.0, torch.nan])), "returned values that are not finite for a turn of 2 tokens"),
        (BrokenCredit(None, more=True), "rewards returned 1 numbers for one turn and 2 for another"),
    ],
)
def test_a_credit_that_would_train_as_nonsense_is_named(credit: BrokenCredit, line: str) -> None:
    with pytest.raises(UsageError, match=rf"BrokenCredit\.?\s?{line}"):
        build(GROUP, credit=credit)
