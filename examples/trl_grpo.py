"""Stock TRL with rlkernel's evaluator as its reward function.

    python -m examples.trl_grpo --model Qwen/Qwen3-0.6B --steps 100

There is one turn, with TRL's own rollouts, loss and logging. Only the problems, the evaluator and the reward are rlkernel's. On a
machine without a GPU, times are modelled.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from envs.problems import load_suite
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import UsageError, exit_status
from rlkernel.integrations.reward_function import RewardFunction, rows
from rlkernel.integrations.service import open_service
from rlkernel.interfaces import Environment
from rlkernel.policy.load import load_model
from rlkernel.types import Problem

LEAST = {"steps": 1, "generations": 2, "tokens": 1}
"""Flag -> its least value. A completion's advantage is measured against those of the same prompt, so one alone has none."""


def train(
    model: Any, tokenizer: Any, problems: Sequence[Problem], environment: Environment, out: Path, **settings: Any
) -> GRPOTrainer:
    """Train the model in place. Returns the trainer as it is after `settings["max_steps"]` steps."""
    cuda = torch.cuda.is_available()
    arguments = GRPOConfig(
        output_dir=str(out), temperature=1.0, beta=0.0, bf16=cuda, use_cpu=not cuda, report_to=[], logging_steps=1, **settings
    )
    with open_service() as service:
        reward = RewardFunction(service, environment, SpeedReward())
        trainer = GRPOTrainer(
            model=model,
            reward_funcs=[reward],
            args=arguments,
            train_dataset=Dataset.from_list(rows(problems, environment)),
            processing_class=tokenizer,
        )
        trainer.train()
    return trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--model", default="small", help="`small`, a directory, or a name on the Hugging Face hub")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--generations", type=int, default=8, help="completions per prompt")
    parser.add_argument("--tokens", type=int, default=256, help="longest completion")
    parser.add_argument("--out", type=Path, default=Path("runs/trl_grpo"))
    given = parser.parse_args()
    for flag, least in LEAST.items():
        if (value := getattr(given, flag)) < least:
            raise UsageError(f"--{flag} is {value}: give at least {least}")
    problems = [problem for problem in load_suite() if problem.split == "train"]
    train(
        *load_model(given.model),
        problems,
        KernelEnvironment(),
        given.out,
        max_steps=given.steps,
        num_generations=given.generations,
        per_device_train_batch_size=given.generations,
        max_completion_length=given.tokens,
    )


if __name__ == "__main__":
    sys.exit(exit_status(main))
