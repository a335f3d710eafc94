"""A small run of a tiny random model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.config import Run
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.types import Problem
from tests.echo import EchoEnvironment

PROBLEMS = (
    *(Problem(f"level1/train{i}", 1, "train", "") for i in range(3)),
    Problem("level1/held_out", 1, "validation", ""),
)


@pytest.fixture
def model_directory(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> str:
    directory = tmp_path / "model"
    tiny_model.save_pretrained(directory)
    tiny_tokenizer.save_pretrained(directory)
    return str(directory)


@pytest.fixture
def run(model_directory: str) -> Run:
    return Run(
        name="trloo",
        problems=PROBLEMS,
        environment=EchoEnvironment(),
        reward=SpeedReward(),
        advantage=TRLOO(),
        credit=UniformCredit(),
        model=model_directory,
        turns=2,
        prompts_per_step=2,
        rollouts=2,
        max_new_tokens=12,
        steps=3,
        learning_rate=1e-3,
        validation_every=2,
        validation_rollouts=2,
    )
