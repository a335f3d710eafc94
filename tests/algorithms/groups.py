"""Groups made by hand, and what a correction says of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from rlkernel.interfaces import Correction
from rlkernel.types import Completion, Evaluation, Group, LaunchFact, OpFact, Problem, Status, Trajectory, Turn

PROBLEM = Problem("p", 1, "train", "")


def turn(reward: float = 1.0, coverage: float = 1.0, status: Status = Status.CORRECT, speedup: float = 1.0, n: int = 1) -> Turn:
    facts = Evaluation(
        status,
        "",
        speedup=speedup,
        coverage=coverage,
        launches=(LaunchFact("k", 1, 1.0, 0.5, True),),
        ops=(OpFact("aten.add", 1, 1.0, 0.5),),
    )
    return Turn((), Completion((1,) * n, (0.0,) * n, "", "stop"), "", facts, reward, "")


def group(*trajectories: Sequence[Turn]) -> Group:
    return Group(PROBLEM, tuple(Trajectory(PROBLEM, tuple(turns)) for turns in trajectories))


def sampled(of: Group) -> torch.Tensor:
    T = max(len(trajectory.turns) for trajectory in of.trajectories)
    L = max(len(turn.completion.token_ids) for trajectory in of.trajectories for turn in trajectory.turns)
    sampled_KTL = torch.zeros(len(of.trajectories), T, L, dtype=torch.bool)
    for k, trajectory in enumerate(of.trajectories):
        for t, turn in enumerate(trajectory.turns):
            sampled_KTL[k, t, : len(turn.completion.token_ids)] = True
    return sampled_KTL


def keeps(correction: Correction, of: Group, ratios_KTL: torch.Tensor | None = None, seed: int = 0) -> torch.Tensor:
    sampled_KTL = sampled(of)
    ratios_KTL = torch.zeros(sampled_KTL.shape) if ratios_KTL is None else ratios_KTL
    return correction(of, ratios_KTL, sampled_KTL, torch.Generator().manual_seed(seed))
