"""TRL's own GRPOTrainer on random weights, with the seconds of its phases: what `benchmarks/loop.py` compares with."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import datasets
import torch
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from benchmarks.training import PlainText
from rlkernel.policy import chat
from rlkernel.training.trl_arguments import keep_to_one_card, silence
from rlkernel.types import Evaluation, Problem

Evaluate = Callable[[Problem, str | None], Awaitable[Evaluation]]


@dataclass(frozen=True)
class Load:
    """prompts x rollouts completions of exactly `tokens` tokens in each of `steps` steps."""

    prompts: int
    rollouts: int
    tokens: int
    steps: int


class Stopwatch(TrainerCallback):  # type: ignore[misc]
    """Steps one after another; generation and evaluation are timed where the trainer calls them, and never overlap."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.started = self.generation = self.evaluation = 0.0
        self.lengths = [0]

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        synchronize()
        self.started, self.generation, self.evaluation = time.perf_counter(), 0.0, 0.0

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        synchronize()
        wall = time.perf_counter() - self.started
        memory = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else None
        self.steps.append(
            {
                "seconds_wall": wall,
                "seconds_generation": self.generation,
                "seconds_evaluation": self.evaluation,
                "seconds_evaluation_hidden": 0.0,
                "seconds_training": wall - self.generation - self.evaluation,
                "completion_length": sum(self.lengths) / len(self.lengths),
                "memory_gpu_gib": memory,
            }
        )


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def train_stock(model: Any, tokenizer: Any, evaluate: Evaluate, load: Load, directory: Path) -> list[dict[str, Any]]:
    """Its defaults, but for the sizes, beta, and that nothing is saved: 8 rows per micro-batch (or all of fewer), recomputed
    activations, one optimiser step per batch. The end of sequence is kept from being sampled."""
    silence()
    watch = Stopwatch()
    problem = Problem("stock", 1, "train", "")

    async def reward(prompts: list[str], completions: list[str], completion_ids: list[list[int]], **columns: Any) -> list[float]:
        watch.lengths = [len(ids) for ids in completion_ids]
        started = time.perf_counter()
        found = [0.0] * len(completions)

        async def one(i: int) -> None:
            found[i] = (await evaluate(problem, completions[i])).speedup or 0.0

        async with anyio.create_task_group() as tasks:
            for i in range(len(completions)):
                tasks.start_soon(one, i)
        watch.evaluation += time.perf_counter() - started
        return found

    rows = load.prompts * load.rollouts
    per_device = min(8, rows)
    cuda = torch.cuda.is_available()
    arguments = GRPOConfig(
        output_dir=str(directory),
        max_steps=load.steps,
        per_device_train_batch_size=per_device,
        gradient_accumulation_steps=rows // per_device,
        num_generations=load.rollouts,
        max_completion_length=load.tokens,
        generation_kwargs={"min_new_tokens": load.tokens},
        bf16=cuda,
        use_cpu=not cuda,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_steps=1,
        dataloader_pin_memory=False,
    )
    keep_to_one_card(arguments)
    text = PlainText()
    problems = [Problem(f"p{i}", 1, "train", "") for i in range(load.prompts)]
    prompts = [tokenizer.decode(chat.encode_prompt(tokenizer, text.prompt(each))) for each in problems]
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=arguments,
        train_dataset=datasets.Dataset.from_dict({"prompt": prompts}),
        processing_class=tokenizer,
        callbacks=[watch],
    )
    trainer.remove_callback(PrinterCallback)
    generate = trainer._generate_single_turn

    def timed(*args: Any, **kwargs: Any) -> Any:
        synchronize()
        started = time.perf_counter()
        made = generate(*args, **kwargs)
        synchronize()
        watch.generation += time.perf_counter() - started
        return made

    trainer._generate_single_turn = timed
    trainer.train()
    return watch.steps
