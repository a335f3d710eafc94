"""Groups of trajectories to the tensors that a policy-gradient loss needs. One row per trajectory.

Legend: B rows (groups times K), P prompt positions (left padded), C completion positions (right padded), K trajectories of a
group, T turns.

A row's prompt is the first turn's context. Everything after it is the row's completion: sampled tokens, and between them the
feedback, which is context to attend to and never trained (`policy_mask_BC` is 0 there).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from rlkernel.interfaces import Advantage, Credit, Rejection
from rlkernel.returns import returns_to_go
from rlkernel.types import Group, Trajectory


@dataclass(frozen=True, slots=True)
class Row:
    """One trajectory as tokens. `spans[t]` is where turn t's sampled tokens are in `completion_ids` (start, end)."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    policy_mask: tuple[int, ...]
    """1 where the policy sampled the token."""
    rollout_logprobs: tuple[float, ...]
    """0.0 where it did not."""
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The rows, padded."""

    rows: tuple[Row, ...]
    prompt_ids_BP: torch.Tensor
    prompt_mask_BP: torch.Tensor
    completion_ids_BC: torch.Tensor
    completion_mask_BC: torch.Tensor
    policy_mask_BC: torch.Tensor
    rollout_logprobs_BC: torch.Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """What the loss needs."""

    tokens: Tokens
    advantages_BC: torch.Tensor
    """float32; 0 outside sampled tokens. Also filled for rejected turns, which `loss_mask_BC` excludes."""
    loss_mask_BC: torch.Tensor
    """int64: the policy mask without the rejected turns."""
    trained_turns: int
    """Turns with a token in the loss: the denominator of a token sum per turn, averaged over turns."""
    turns: int


def row(trajectory: Trajectory) -> Row:
    """Concatenate a trajectory; nothing is rendered or tokenised again."""
    completion_ids: list[int] = []
    policy_mask: list[int] = []
    logprobs: list[float] = []
    spans: list[tuple[int, int]] = []
    for t, turn in enumerate(trajectory.turns):
        if t > 0:
            completion_ids += turn.context_ids
            policy_mask += [0] * len(turn.context_ids)
            logprobs += [0.0] * len(turn.context_ids)
        spans.append((len(completion_ids), len(completion_ids) + len(turn.completion.token_ids)))
        completion_ids += turn.completion.token_ids
        policy_mask += [1] * len(turn.completion.token_ids)
        logprobs += turn.completion.logprobs
    prompt_ids = trajectory.turns[0].context_ids
    return Row(prompt_ids, tuple(completion_ids), tuple(policy_mask), tuple(logprobs), tuple(spans))


def pad_rows(groups: Sequence[Group], pad_id: int) -> Tokens:
    """Rows in the order of the groups and, within one, of its trajectories."""
    rows = tuple(row(trajectory) for group in groups for trajectory in group.trajectories)
    P = max(len(r.prompt_ids) for r in rows)
    C = max(len(r.completion_ids) for r in rows)
    return Tokens(
        rows=rows,
        prompt_ids_BP=torch.tensor([(pad_id,) * (P - len(r.prompt_ids)) + r.prompt_ids for r in rows]),
        prompt_mask_BP=torch.tensor([(0,) * (P - len(r.prompt_ids)) + (1,) * len(r.prompt_ids) for r in rows]),
        completion_ids_BC=torch.tensor([r.completion_ids + (pad_id,) * (C - len(r.completion_ids)) for r in rows]),
        completion_mask_BC=torch.tensor([(1,) * len(r.completion_ids) + (0,) * (C - len(r.completion_ids)) for r in rows]),
        policy_mask_BC=torch.tensor([r.policy_mask + (0,) * (C - len(r.completion_ids)) for r in rows]),
        rollout_logprobs_BC=torch.tensor([r.rollout_logprobs + (0.0,) * (C - len(r.completion_ids)) for r in rows]),
    )


def group_advantages(group: Group, advantage: Advantage, gamma: float) -> torch.Tensor:
    """advantages_KT float64 of one group, 0 beyond a trajectory's end."""
    T = max(len(trajectory.turns) for trajectory in group.trajectories)
    rewards_KT = torch.zeros(len(group.trajectories), T, dtype=torch.float64)
    valid_KT = torch.zeros(len(group.trajectories), T, dtype=torch.bool)
    for k, trajectory in enumerate(group.trajectories):
        for t, turn in enumerate(trajectory.turns):
            rewards_KT[k, t], valid_KT[k, t] = turn.reward, True
    return advantage(returns_to_go(rewards_KT, valid_KT, gamma), valid_KT)


def assemble(
    groups: Sequence[Group],
    tokens: Tokens,
    *,
    advantage: Advantage,
    credit: Credit,
    gamma: float,
    rejections: Sequence[Rejection] = (),
    train_logprobs_BC: torch.Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Batch:
    """tokens: `pad_rows(groups)`. Rejected turns have entered their group's baseline, and leave the loss and its
    denominator (arXiv 2602.05885, public code).

    Rejections need `train_logprobs_BC` (the trainer's log-probabilities of `completion_ids_BC`) and a generator; without them
    ValueError is raised.
    """
    if rejections and (train_logprobs_BC is None or generator is None):
        raise ValueError("rejections compare log-probabilities and may draw: pass train_logprobs_BC and generator")
    advantages_BC = torch.zeros(tokens.completion_ids_BC.shape)
    loss_mask_BC = tokens.policy_mask_BC.clone()
    trained_turns, first = 0, 0
    for group in groups:
        rows = tokens.rows[first : first + len(group.trajectories)]
        advantages_KT = group_advantages(group, advantage, gamma)
        keep_KT = torch.ones(advantages_KT.shape, dtype=torch.bool)
        if train_logprobs_BC is not None and generator is not None:
            logprobs = [[train_logprobs_BC[first + k, start:end] for start, end in r.spans] for k, r in enumerate(rows)]
            for rejection in rejections:
                keep_KT &= rejection(group, logprobs, generator)
        for k, (trajectory, r) in enumerate(zip(group.trajectories, rows, strict=True)):
            for t, (turn, (start, end)) in enumerate(zip(trajectory.turns, r.spans, strict=True)):
                advantages_BC[first + k, start:end] = credit(turn, float(advantages_KT[k, t]))
                if keep_KT[k, t]:
                    trained_turns += 1
                else:
                    loss_mask_BC[first + k, start:end] = 0
        first += len(group.trajectories)
    turns = sum(len(r.spans) for r in tokens.rows)
    return Batch(tokens, advantages_BC, loss_mask_BC, trained_turns, turns)
