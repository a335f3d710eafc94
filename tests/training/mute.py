"""Runs whose completions hold no candidate, for processes that cannot read what a test defines."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.config import Run
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.types import Evaluation, Problem


@dataclass(frozen=True)
class Mute:
    """No completion has code."""

    def prompt(self, problem: Problem) -> str:
        return problem.name

    def extract(self, completion: str) -> str | None:
        return None

    def feedback(self, evaluation: Evaluation) -> str:
        return evaluation.detail


def mute_jobs(model: str, directory: Path, *, seeds: int, steps: int) -> list[tuple[Run, Path]]:
    """Runs of several seeds, with their directories."""
    problems = tuple(Problem(f"p{i}", 1, split, "") for i, split in enumerate(("train", "train", "validation")))
    sizes = {"turns": 1, "prompts_per_step": 1, "rollouts": 2, "max_new_tokens": 4, "steps": steps, "jobs": 1}
    often = {"validation_every": 1000, "validation_rollouts": 1}
    base = ("mute", problems, Mute(), SpeedReward(), TRLOO(), UniformCredit())
    return [(Run(*base, model=model, seed=seed, **sizes, **often), directory / str(seed)) for seed in range(seeds)]  # type: ignore[arg-type]
