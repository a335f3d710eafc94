"""Hand-made trajectories to exact tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch

from algorithms.grpo import GRPO
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.batch import Batch, assemble, pad_rows
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
    seen: list[list[list[list[float]]]]

    def __call__(
        self, group: Group, train_logprobs: Sequence[Sequence[torch.Tensor]], generator: torch.Generator
    ) -> torch.Tensor:
        self.seen.append([[values.tolist() for values in row] for row in train_logprobs])
        keep = torch.ones(len(group.trajectories), max(len(t.turns) for t in group.trajectories), dtype=torch.bool)
        for k, t in self.rejected:
            keep[k, t] = False
        return keep


def build(*groups: Group, **kwargs: object) -> Batch:
    defaults: dict[str, object] = {"advantage": TRLOO(), "credit": UniformCredit(), "gamma": 1.0}
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


def test_a_rejected_turn_leaves_the_loss_and_the_denominator_but_not_the_baseline() -> None:
    reject = RejectTurns(rejected=((0, 0),), seen=[])
    logprobs = torch.arange(10.0).view(2, 5)
    batch = build(GROUP, rejections=(reject,), train_logprobs_BC=logprobs, generator=torch.Generator())
    assert reject.seen == [[[[0.0, 1.0], [3.0, 4.0]], [[5.0]]]]
    assert batch.loss_mask_BC.tolist() == [[0, 0, 0, 1, 1], [1, 0, 0, 0, 0]]
    assert (batch.trained_turns, batch.turns) == (2, 3)
    assert batch.advantages_BC[1, 0].item() == -1.5


def test_rejections_are_composed_by_and() -> None:
    rejections = (RejectTurns(((0, 0),), []), RejectTurns(((1, 0),), []))
    batch = build(GROUP, rejections=rejections, train_logprobs_BC=torch.zeros(2, 5), generator=torch.Generator())
    assert batch.loss_mask_BC.tolist() == [[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]
    assert batch.trained_turns == 1


def test_rejections_without_training_logprobs_are_refused() -> None:
    with pytest.raises(ValueError, match="pass train_logprobs_BC"):
        build(GROUP, rejections=(RejectTurns((), []),))
