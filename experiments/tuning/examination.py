"""Validation by execution: the model answers problems, the evaluator judges the answers, and training is none the wiser."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.interfaces import Environment
from rlkernel.policy.hf import open_policy
from rlkernel.rollout import rollout_groups
from rlkernel.training.placement import EvaluatorDemand, open_evaluator
from rlkernel.types import Group, Problem


@dataclass(frozen=True)
class Examination:
    """What a model is asked, and how its answers are judged."""

    problems: tuple[Problem, ...]
    environment: Environment
    turns: int
    rollouts: int
    """Trajectories per problem."""
    max_new_tokens: int
    seed: int
    device: str = "auto"
    jobs: int = 0
    evaluation_gib: int = 0
    """What evaluations may take of a card that they share with the model, in GiB; 0: half of it."""


async def examine(model: Any, tokenizer: Any, asked: Examination, cache: Path) -> tuple[Group, ...]:
    """The trajectories of a model at temperature 1, the same for the same weights. Times are measured where there is a GPU."""
    demand = EvaluatorDemand(asked.device, asked.jobs, evaluation_gib=asked.evaluation_gib)
    with _undisturbed(model):
        async with open_evaluator(demand, cache) as pool:
            lease = pool.lease if pool.shares else nullcontext
            async with open_policy(model, tokenizer, max_new_tokens=asked.max_new_tokens, lease=lease) as policy:
                return await rollout_groups(
                    asked.problems,
                    asked.rollouts,
                    policy,
                    pool,
                    asked.environment,
                    SpeedReward(),
                    asked.turns,
                    seed=asked.seed,
                )


@contextmanager
def _undisturbed(model: Any) -> Iterator[None]:
    """Keep the random numbers and the mode of a model in training, and the memory of its card: evaluations have their share of it
    inside alone."""
    training, states = model.training, (random.getstate(), np.random.get_state())
    devices = [model.device] if model.device.type == "cuda" else []
    if devices:
        torch.cuda.empty_cache()
    model.eval()
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        model.train(training)
        random.setstate(states[0])
        np.random.set_state(states[1])
        if devices:
            torch.cuda.set_per_process_memory_fraction(1.0, model.device)
            torch.cuda.empty_cache()
