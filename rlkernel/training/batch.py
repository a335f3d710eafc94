"""Groups of trajectories to the tensors that a policy-gradient loss needs. One row per trajectory.

Legend: B rows (groups times K), P prompt positions (left padded), C completion positions (right padded), G groups, K trajectories
of a group, T turns, L sampled tokens of a turn.

A row's prompt is the first turn's context. Everything after it is the row's completion: sampled tokens, and between them the
feedback, which is context to attend to and never trained (`policy_mask_BC` is 0 there).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from rlkernel.errors import UsageError
from rlkernel.interfaces import Advantage, Correction, Credit, Decode
from rlkernel.returned import rewards_of
from rlkernel.training.returns import check_advantages, check_credited, returns_to_go
from rlkernel.types import Group, Trajectory


@dataclass(frozen=True, slots=True)
class TokenRow:
    """One trajectory as tokens. `spans[t]` is where turn t's sampled tokens are in `completion_ids` (start, end)."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    policy_mask: tuple[int, ...]
    """1 where the policy sampled the token."""
    rollout_logprobs: tuple[float, ...]
    """Log-probabilities at sampling time, 0.0 where the policy did not sample the token."""
    spans: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The rows of a batch, padded to tensors."""

    rows: tuple[TokenRow, ...]
    prompt_ids_BP: torch.Tensor
    prompt_mask_BP: torch.Tensor
    completion_ids_BC: torch.Tensor
    completion_mask_BC: torch.Tensor
    policy_mask_BC: torch.Tensor
    rollout_logprobs_BC: torch.Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """What the loss needs beside the tokens: masks, advantages, and the counts that it is divided by."""

    advantages_BC: torch.Tensor
    """float32; 0 outside sampled tokens. Also filled for rejected turns, which `loss_mask_BC` excludes."""
    loss_mask_BC: torch.Tensor
    """int64: the policy mask without the rejected tokens: 1 where the weight is above 0."""
    weights_BC: torch.Tensor
    """float32: what each token's loss is multiplied by; 0 outside the loss, 1 where no correction weighs."""
    trained_turns: int
    """Turns with a token in the loss: the denominator of a token sum per turn, averaged over turns. Weights do not enter it."""
    turns: int
    rejected: Mapping[str, int]
    """The turns that each correction rejects, by `names`."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What the corrections leave of one group."""

    weights_KTL: torch.Tensor
    """float64: what the token's loss is multiplied by, the product over the corrections; 0 where it does not train."""
    baseline_KT: torch.Tensor
    """bool: the turn belongs to its group, whose baseline it moves."""
    counted_KT: torch.Tensor
    """bool: the turn's reward enters the returns to go."""
    rejected: Mapping[str, int]


def token_row(trajectory: Trajectory) -> TokenRow:
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
    return TokenRow(prompt_ids, tuple(completion_ids), tuple(policy_mask), tuple(logprobs), tuple(spans))


def pad_rows(groups: Sequence[Group], pad_id: int) -> Tokens:
    """The trajectories of all groups as padded rows, in the order of the groups and, within one, of its trajectories."""
    rows = tuple(token_row(trajectory) for group in groups for trajectory in group.trajectories)
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


def turn_numbers(tokens: Tokens) -> torch.Tensor:
    """The turn of every sampled token from 1, and 0 elsewhere: turns_BC, int64."""
    turns_BC = torch.zeros_like(tokens.policy_mask_BC)
    for b, row in enumerate(tokens.rows):
        for t, (start, end) in enumerate(row.spans):
            turns_BC[b, start:end] = t + 1
    return turns_BC


def reached(groups: Sequence[Group]) -> torch.Tensor:
    """The turns that were reached: valid_GKT, bool, False beyond a trajectory's end."""
    K = max(len(group.trajectories) for group in groups)
    T = max(len(trajectory.turns) for group in groups for trajectory in group.trajectories)
    valid_GKT = torch.zeros(len(groups), K, T, dtype=torch.bool)
    for g, group in enumerate(groups):
        for k, trajectory in enumerate(group.trajectories):
            valid_GKT[g, k, : len(trajectory.turns)] = True
    return valid_GKT


def log_ratios(rows: Sequence[TokenRow], train_logprobs_KC: torch.Tensor | None, T: int) -> tuple[torch.Tensor, torch.Tensor]:
    """log_ratios_KTL of one group's sampled tokens, training minus rollout, all 0 without the former; and sampled_KTL, False for
    padding."""
    L = max(end - start for r in rows for start, end in r.spans)
    ratios_KTL = torch.zeros(len(rows), T, L, dtype=torch.float64)
    sampled_KTL = torch.zeros(len(rows), T, L, dtype=torch.bool)
    for k, r in enumerate(rows):
        for t, (start, end) in enumerate(r.spans):
            if train_logprobs_KC is not None:
                rollout_L = torch.tensor(r.rollout_logprobs[start:end], dtype=torch.float64)
                ratios_KTL[k, t, : end - start] = train_logprobs_KC[k, start:end].double() - rollout_L
            sampled_KTL[k, t, : end - start] = True
    return ratios_KTL, sampled_KTL


def names(corrections: Sequence[Correction]) -> list[str]:
    """The corrections' names in metrics: their classes in lower case; the second of a class has `_2` after it."""
    found: list[str] = []
    for correction in corrections:
        name = type(correction).__name__.lower()
        earlier = sum(type(other) is type(correction) for other in corrections[: len(found)])
        found.append(f"{name}_{earlier + 1}" if earlier else name)
    return found


def needs_ratios(corrections: Sequence[Correction]) -> bool:
    """Whether one of the corrections compares training with sampling."""
    return any(correction.needs_ratios for correction in corrections)


def keep(
    group: Group,
    corrections: Sequence[Correction],
    log_ratios_KTL: torch.Tensor,
    sampled_KTL: torch.Tensor,
    generator: torch.Generator,
) -> Kept:
    """Apply the corrections to one group, in their order. A turn that one of them rejects also loses what that one `removes`."""
    turns_KT = sampled_KTL.any(-1)
    loss_KTL, baseline_KT, counted_KT = sampled_KTL.clone(), turns_KT.clone(), turns_KT.clone()
    weights_KTL = sampled_KTL.double()
    rejected: Counter[str] = Counter()
    for name, correction in zip(names(corrections), corrections, strict=True):
        given_KTL = _weights(correction, correction(group, log_ratios_KTL, loss_KTL.clone(), generator), sampled_KTL)
        keep_KTL = given_KTL > 0
        # Void after the mismatch has rejected it is still void: what is said of turns already without a token counts.
        judged_KTL = torch.where(loss_KTL.any(-1, keepdim=True), loss_KTL, sampled_KTL)
        keep_KT = (keep_KTL & judged_KTL).any(-1)
        loss_KTL &= keep_KTL
        weights_KTL *= given_KTL
        if correction.removes in ("baseline", "return"):
            baseline_KT &= keep_KT
        if correction.removes == "return":
            counted_KT &= keep_KT
        rejected[name] += int((turns_KT & ~keep_KT).sum())
    return Kept(weights_KTL, baseline_KT, counted_KT, rejected)


def _weights(correction: Correction, given_KTL: torch.Tensor, sampled_KTL: torch.Tensor) -> torch.Tensor:
    """What a correction has returned as weights_KTL, float64, 0 in the padding. Raises UsageError for what is none."""
    name = type(correction).__name__
    if given_KTL.shape != sampled_KTL.shape:
        raise UsageError(
            f"{name} returned a tensor of shape {tuple(given_KTL.shape)} for tokens of shape {tuple(sampled_KTL.shape)}: a "
            "correction gives one weight per token"
        )
    weights_KTL = torch.where(sampled_KTL, given_KTL.double(), 0.0)
    if not bool((torch.isfinite(weights_KTL) & (weights_KTL >= 0)).all()):
        raise UsageError(f"{name} returned weights that are negative or not finite: bound its ratios, as TIS does")
    return weights_KTL


def turn_advantages(
    groups: Sequence[Group],
    *,
    advantage: Advantage,
    credit: Credit,
    gamma: float,
    baseline_GKT: torch.Tensor,
    counted_GKT: torch.Tensor,
) -> list[torch.Tensor]:
    """One advantages_GKT, float64, per reward of the credit: the advantage of that reward's returns to go."""
    rewards_GKT: dict[tuple[int, int, int], tuple[float, ...]] = {
        (g, k, t): rewards_of(credit, turn)
        for g, group in enumerate(groups)
        for k, trajectory in enumerate(group.trajectories)
        for t, turn in enumerate(trajectory.turns)
    }
    counts = sorted({len(rewards) for rewards in rewards_GKT.values()})
    if len(counts) > 1:
        raise UsageError(
            f"{type(credit).__name__}.rewards returned {counts[0]} numbers for one turn and {counts[-1]} for another"
        )
    found = []
    for channel in range(counts[0]):
        channel_GKT = torch.zeros(baseline_GKT.shape, dtype=torch.float64)
        for index, rewards in rewards_GKT.items():
            channel_GKT[index] = rewards[channel]
        advantages_GKT = advantage(returns_to_go(channel_GKT, counted_GKT, gamma), baseline_GKT)
        check_advantages(advantage, advantages_GKT, baseline_GKT)
        found.append(advantages_GKT)
    return found


def assemble(
    groups: Sequence[Group],
    tokens: Tokens,
    *,
    advantage: Advantage,
    credit: Credit,
    gamma: float,
    decode: Decode,
    corrections: Sequence[Correction] = (),
    train_logprobs_BC: torch.Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Batch:
    """The masks and advantages of a batch, whose `tokens` are `pad_rows(groups)`. Rejected tokens leave the loss and its
    denominator; whether a rejected turn also leaves its group's baseline and the returns is the correction's own `removes`.

    Corrections need a generator and, where their `needs_ratios` says so, `train_logprobs_BC` (the trainer's log-probabilities of
    `completion_ids_BC`); without them ValueError is raised.

    Worked example, one group of two trajectories, TRLOO and gamma 1. The first has turns `a b` (reward 1) and `c` (reward 2) with
    feedback F between them, the second has `d e` (reward 0.5), so that G, K, T, L = 1, 2, 2, 2 and B, C = 2, 4:

        completion_ids_BC    a    b    F    c        d    e    .    .
        policy_mask_BC       1    1    0    1        1    1    0    0
        returns to go        3    3         2        0.5  0.5             1 + 2, 2, 0.5
        advantages_BC        2.5  2.5  0    2       -2.5 -2.5  0    0     3 - 0.5, 2 alone at its turn, 0.5 - 3

    A correction with weights 2 for `a`, 0 for `c` and else 1 gives weights_BC 2 1 0 0 | 1 1 0 0 and
    loss_mask_BC 1 1 0 0 | 1 1 0 0. Then trained_turns is 2 of turns 3. `advantages_BC` stays, unless the
    correction removes `c` from its group or from the returns.
    """
    if corrections and generator is None:
        raise ValueError("corrections may draw: pass a generator")
    if train_logprobs_BC is None and needs_ratios(corrections):
        raise ValueError("a correction compares log-probabilities: pass train_logprobs_BC")
    valid_GKT = reached(groups)
    baseline_GKT, counted_GKT = valid_GKT.clone(), valid_GKT.clone()
    weights_BC = tokens.policy_mask_BC.float()
    rejected: Counter[str] = Counter()
    first = 0
    for g, group in enumerate(groups):
        K = len(group.trajectories)
        if corrections and generator is not None:
            rows = tokens.rows[first : first + K]
            train_logprobs_KC = None if train_logprobs_BC is None else train_logprobs_BC[first : first + K]
            ratios_KTL, sampled_KTL = log_ratios(rows, train_logprobs_KC, valid_GKT.shape[2])
            kept = keep(group, corrections, ratios_KTL, sampled_KTL, generator)
            baseline_GKT[g, :K], counted_GKT[g, :K] = kept.baseline_KT, kept.counted_KT
            rejected.update(kept.rejected)
            for k, r in enumerate(rows):
                for t, (start, end) in enumerate(r.spans):
                    weights_BC[first + k, start:end] = kept.weights_KTL[k, t, : end - start]
        first += K
    loss_mask_BC = (weights_BC > 0).long()
    by_reward = turn_advantages(
        groups, advantage=advantage, credit=credit, gamma=gamma, baseline_GKT=baseline_GKT, counted_GKT=counted_GKT
    )
    advantages_BC = torch.zeros(tokens.completion_ids_BC.shape)
    trained_turns, b = 0, 0
    for g, group in enumerate(groups):
        for k, trajectory in enumerate(group.trajectories):
            for t, (turn, (start, end)) in enumerate(zip(trajectory.turns, tokens.rows[b].spans, strict=True)):
                advantage_L = credit(turn, [float(of_GKT[g, k, t]) for of_GKT in by_reward], decode)
                check_credited(credit, advantage_L, end - start)
                advantages_BC[b, start:end] = advantage_L
                trained_turns += bool(loss_mask_BC[b, start:end].any())
            b += 1
    return Batch(advantages_BC, loss_mask_BC, weights_BC, trained_turns, int(valid_GKT.sum()), rejected)
