"""Doubles for commands that train: two arms, two presets, and a trainer that writes what finished runs leave."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from algorithms import TABLES
from algorithms.grpo import GRPO
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.commands.asked import Preset
from rlkernel.commands.experiment import Experiment
from rlkernel.commands.plan import Jobs
from rlkernel.config import Run
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.report.report import Story
from rlkernel.runs import directory as rundir
from rlkernel.types import Problem

PROBLEMS = (Problem("level1/relu", 1, "train", ""), *(Problem(f"level1/held{i}", 1, "validation", "") for i in range(3)))
BASE = Run("grpo", PROBLEMS, KernelEnvironment(), SpeedReward(), GRPO(), UniformCredit())
ARMS = {"grpo": BASE, "trloo": replace(BASE, name="trloo", advantage=TRLOO())}


def larger(run: Run) -> Run:
    return replace(run, max_new_tokens=4096, learning_rate=1e-6)


CPU = Preset("small", lambda run: run, seeds=(0, 1))
PRESETS = {
    "cpu": CPU,
    "paper": Preset(
        "large", larger, (0,), gpu=True, estimate=lambda run: f"an estimate: {run.max_new_tokens}", rehearse=CPU.adapt
    ),
}


def experiment(arms: dict[str, Run] | None = None, sharing: dict[str, tuple[str, ...]] | None = None) -> Experiment:
    story = Story("Estimators", "The claim.")
    return Experiment("estimators", arms or ARMS, PRESETS, story, TABLES, lambda arms: sharing or {})


@dataclass
class ScriptedTraining:
    """Writes what a finished run leaves, with reward seed + 1 for grpo and seed + 2 for trloo."""

    status: int = 0
    jobs: list[tuple[Run, Path]] = field(default_factory=list)
    cache: Path | None = None
    checkpoint_every: int = 0
    until: float | None = None
    together: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)

    def __call__(
        self,
        jobs: Jobs,
        *,
        cache_dir: Path,
        checkpoint_every: int,
        until: float | None = None,
        labels: Mapping[str, str] = MappingProxyType({}),
        together: int = 1,
    ) -> int:
        self.jobs, self.cache, self.checkpoint_every, self.until = list(jobs), cache_dir, checkpoint_every, until
        self.labels, self.together = labels, together
        for run, directory in jobs:
            directory.mkdir(parents=True, exist_ok=True)
            rundir.begin(directory, run)
            rundir.update_manifest(directory, timing="modelled")
            reward = run.seed + 1.0 + (run.name == "trloo")
            shares = {
                "fast_1": 0.5,
                "fast_1.2": 0.25,
                "fast_1_turn_1": 0.5,
                "fast_1.2_turn_1": 0.25,
                "hacking_rate": 0.0,
                "lazy_rate": 0.0,
            }
            row = {"split": "validation", "step": 0, "reward": reward, **shares}
            (directory / "metrics.jsonl").write_text(json.dumps(row) + "\n")
            (directory / "transcripts.jsonl").write_text("")
        return self.status
