"""Measure memory and speed of training at real model sizes, on synthetic batches.

    python -m benchmarks.training --out FILE [--cases 1.7b-full,8b-lora,0.6b-full] [--steps 3] [--mrs]

Weights are random at the shapes of the published Qwen3 models. The rollouts are made up, as data only: random token ids in three
turns of about 300, with prompts and feedback between, and random rewards. The rest is what runs train with: `KernelGRPOTrainer`,
one row per trajectory, float32 weights under bfloat16 autocast or float32 adapters over bfloat16, AdamW in float32.

A case is SHAPE-full or SHAPE-lora (rank 32). Without a GPU only `tiny-full` and `tiny-lora` make sense.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers.trainer_utils import SaveStrategy

from algorithms.mrs import MRS
from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from benchmarks.shapes import SHAPES, random_model
from rlkernel.config import Run
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.policy.load import add_lora
from rlkernel.policy.small import load_small
from rlkernel.training.hooks import StepFacts
from rlkernel.training.memory import MICRO_TOKENS
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn

LORA_RANK = 32
PROMPT_TOKENS, FEEDBACK_TOKENS = 384, 100


@dataclass(frozen=True)
class PlainText:
    """Prompts and feedback of a benchmark, in lines of about four tokens."""

    prompt_lines: int = PROMPT_TOKENS // 4
    feedback_lines: int = FEEDBACK_TOKENS // 4

    def prompt(self, problem: Problem) -> str:
        return f"{problem.name}\n" + "z = 3\n" * self.prompt_lines

    def extract(self, completion: str) -> str | None:
        return completion

    def feedback(self, evaluation: Evaluation) -> str:
        return "z = 4\n" * self.feedback_lines


def make_run(prompts: int, rollouts: int, turns: int, tokens: int, steps: int, *, mrs: bool = False, **changes: Any) -> Run:
    """A run of TRLOO over `prompts` x `rollouts` trajectories of `turns` x `tokens` sampled tokens. mrs: also pay for its
    forward pass."""
    problems = tuple(Problem(f"p{i}", 1, "train", "") for i in range(prompts))
    rejections = (MRS(low=0.0, high=float("inf"), veto=None),) if mrs else ()
    run: dict[str, Any] = {
        "corrections": rejections,
        "turns": turns,
        "prompts_per_step": prompts,
        "rollouts": rollouts,
        "max_new_tokens": tokens,
        "steps": steps,
        **changes,
    }
    return Run("benchmark", problems, PlainText(), SpeedReward(), TRLOO(), UniformCredit(), **run)


def made_up_groups(problems: Sequence[Problem], run: Run, vocabulary: int, seed: int) -> tuple[Group, ...]:
    """Make up groups with turns of 5/6 to 7/6 of `Run.max_new_tokens` tokens."""
    draw = random.Random(seed)
    tokens = run.max_new_tokens

    def some(length: int) -> tuple[int, ...]:
        return tuple(draw.choices(range(vocabulary), k=length))

    def turn(context: tuple[int, ...]) -> Turn:
        ids = some(draw.randint(tokens * 5 // 6, tokens * 7 // 6))
        completion = Completion(ids, (-12.0,) * len(ids), "", "length")
        return Turn(context, completion, None, Evaluation(Status.INCORRECT, ""), draw.random(), "")

    def trajectory(problem: Problem, prompt: tuple[int, ...]) -> Trajectory:
        return Trajectory(problem, tuple(turn(some(FEEDBACK_TOKENS) if t else prompt) for t in range(run.turns)))

    found = []
    for problem in problems:
        prompt = some(PROMPT_TOKENS)
        found.append(Group(problem, tuple(trajectory(problem, prompt) for _ in range(run.rollouts))))
    return tuple(found)


@dataclass
class Timed:
    """`Hooks` of the trainer that make the batches up and time the rest."""

    run: Run
    vocabulary: int
    steps: list[dict[str, Any]] = field(default_factory=list)
    started: float = 0.0
    tokens: int = 0

    def rollout(self, step: int) -> tuple[Group, ...]:
        groups = made_up_groups(self.run.problems, self.run, self.vocabulary, step)
        turns = [turn for group in groups for trajectory in group.trajectories for turn in trajectory.turns]
        self.tokens = sum(len(turn.context_ids) + len(turn.completion.token_ids) for turn in turns)
        self.started = time.perf_counter()
        return groups

    @contextmanager
    def lease(self) -> Iterator[None]:
        yield

    def step_done(self, facts: StepFacts) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        numbers = {"sampled_tokens": facts.tokens, "loss": facts.loss, "grad_norm": facts.grad_norm, "entropy": facts.entropy}
        self.steps.append({"seconds": time.perf_counter() - self.started, "tokens": self.tokens, **numbers})

    def save(self, directory: Path) -> None:
        """No checkpoint is written."""

    def enough(self) -> bool:
        return False

    def check_cancelled(self) -> None:
        """Nobody cancels a benchmark."""


def measure(case: str, run: Run, micro_tokens: int) -> dict[str, Any]:
    """Measure one case, from no model to its last step."""
    shape, _, kind = case.partition("-")
    if shape not in SHAPES or kind not in ("full", "lora"):
        raise ValueError(f"case {case!r}: write SHAPE-full or SHAPE-lora with a shape of {', '.join(SHAPES)}")
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    started = time.perf_counter()
    model = random_model(shape, "cuda" if cuda else "cpu", torch.bfloat16 if kind == "lora" else torch.float32)
    if kind == "lora":
        model = add_lora(model, LORA_RANK, 32.0)
    made = time.perf_counter() - started
    timed = Timed(run, SHAPES[shape]["vocab_size"])
    with tempfile.TemporaryDirectory() as directory:
        trainer = KernelGRPOTrainer(run, model, load_small()[1], timed, Path(directory), micro_tokens=micro_tokens)
        trainer.args.save_strategy = SaveStrategy.NO
        trainer.train()
    # The first step compiles kernels and allocates.
    settled = timed.steps[1:] or timed.steps
    seconds = sum(step["seconds"] for step in settled)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return {
        "case": case,
        "parameters": parameters,
        "trained_parameters": sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad),
        "gradient_checkpointing": bool(trainer.args.gradient_checkpointing),
        "optimiser": str(trainer.args.optim),
        "seconds_model": made,
        "seconds_step": seconds / len(settled),
        "tokens_per_second": sum(step["tokens"] for step in settled) / seconds,
        "sampled_tokens_per_second": sum(step["sampled_tokens"] for step in settled) / seconds,
        "peak_allocated_gib": torch.cuda.max_memory_allocated() / 2**30 if cuda else None,
        "peak_reserved_gib": torch.cuda.max_memory_reserved() / 2**30 if cuda else None,
        "steps": timed.steps,
    }


def release() -> None:
    """Give back the memory that the models before held."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def show(rows: Sequence[dict[str, Any]]) -> None:
    table = Table("case", "step s", "tokens/s", "sampled/s", "peak GiB", "reserved GiB", "model s", "steps")
    for row in rows:
        if "error" in row:
            table.add_row(row["case"], "failed:", row["error"])
            continue
        peaks = ["-" if row[name] is None else f"{row[name]:.1f}" for name in ("peak_allocated_gib", "peak_reserved_gib")]
        speeds = [f"{row[name]:.0f}" for name in ("tokens_per_second", "sampled_tokens_per_second")]
        times = f"{row['seconds_step']:.2f}", f"{row['seconds_model']:.1f}"
        table.add_row(row["case"], times[0], *speeds, *peaks, times[1], str(len(row["steps"])))
    Console(width=110).print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", default="1.7b-full,8b-lora,0.6b-full")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=300, help="about so many per turn")
    parser.add_argument("--micro-tokens", type=int, default=MICRO_TOKENS)
    parser.add_argument("--mrs", action="store_true", help="also the forward pass that MRS needs")
    given = parser.parse_args(arguments)
    run = make_run(given.prompts, given.rollouts, 3, given.tokens, given.steps, mrs=given.mrs)
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    result = {"device": device, "torch": torch.__version__, "mrs": given.mrs, "micro_tokens": given.micro_tokens, "cases": []}
    for case in given.cases.split(","):
        try:
            row = measure(case, run, given.micro_tokens)
        except Exception as error:  # the other cases' numbers must not be lost
            traceback.print_exc()
            row = {"case": case, "error": (str(error).strip().splitlines() or [type(error).__name__])[0]}
        result["cases"].append(row)
        given.out.write_text(json.dumps(result, indent=1))
        release()
    show(result["cases"])


if __name__ == "__main__":
    main()
