"""TRL's configuration follows from a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.config import Run
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.training import trl_arguments
from tests.training.trainer_doubles import PROBLEMS, NoEnvironment, make_trainer

RUN = Run(
    "test",
    PROBLEMS,
    NoEnvironment(),
    SpeedReward(),
    TRLOO(),
    UniformCredit(),
    prompts_per_step=3,
    rollouts=4,
    turns=2,
    max_new_tokens=16,
    steps=7,
    learning_rate=1e-3,
    temperature=0.5,
    seed=11,
)


def test_one_process_uses_one_device(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> None:
    trainer, _ = make_trainer(tiny_model, tiny_tokenizer, tmp_path)
    assert trainer.args.n_gpu <= 1
    assert trainer.args.loss_type == "dapo"
    assert (trainer.args.epsilon, trainer.args.epsilon_high, trainer.args.beta) == (0.2, 0.28, 0.0)
    assert trainer.args.gradient_accumulation_steps * trainer.args.per_device_train_batch_size == 4


def test_the_run_decides_lengths_steps_and_checkpoints(tmp_path: Path) -> None:
    arguments = trl_arguments.training_arguments(RUN, tmp_path, 3, recomputed=True)
    assert (arguments.max_steps, arguments.save_steps, arguments.save_total_limit) == (7, 3, 2)
    assert (arguments.temperature, arguments.learning_rate, arguments.seed) == (0.5, 1e-3, 11)
    # 2 turns of 16 tokens; 3 problems of 4 trajectories are one batch.
    assert (arguments.max_completion_length, arguments.per_device_train_batch_size, arguments.num_generations) == (32, 12, 4)
    assert arguments.gradient_checkpointing
    assert arguments.output_dir == str(tmp_path)


def test_other_visible_cards_are_left_alone(tmp_path: Path) -> None:
    arguments = trl_arguments.training_arguments(RUN, tmp_path, 1, recomputed=False)
    arguments._n_gpu = 4
    trl_arguments.keep_to_one_card(arguments)
    assert arguments.n_gpu == 1
