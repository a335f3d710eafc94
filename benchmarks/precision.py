"""Train the same run with float32 and with bfloat16 weights, and print loss, reward and validation side by side.

    python -m benchmarks.precision --out FILE [--shape 0.6b] [--steps 30] [--limit-seconds 540]

Weights are random at a published shape, and are made in float32 once: bfloat16 starts from their nearest values. A run samples
completions of 64 tokens for 8 prompts x 8 times from its own weights, and is paid the share of tokens from the first half of the
vocabulary: chance pays 0.5, and everything above is learned. Validation samples 64 completions with the same random numbers each
time. Both runs have the same seeds, so that they differ by the numbers' format alone. `--shape tiny` runs without a GPU.

With `--limit-seconds`, checkpoints are written into FILE.work every `--save-every` steps. The command ends with status 75 at the
first one after that time; the same command goes on from there, to the same numbers, and deletes them when a run is done.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers.trainer_utils import SaveStrategy

from benchmarks.shapes import SHAPES, random_model
from benchmarks.training import make_run, release
from rlkernel.config import Run
from rlkernel.policy.engine import Request
from rlkernel.policy.hf import open_engine
from rlkernel.policy.small import load_small
from rlkernel.rollout import derive_seed
from rlkernel.runs import checkpoints
from rlkernel.training.hooks import StepFacts
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Completion, Evaluation, Group, Status, Trajectory, Turn

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
PROMPTS, ROLLOUTS, TOKENS = 8, 8, 64
EVERY = 5
"""Steps between validations."""
AGAIN = 75
"""The exit status of a command whose time was up: the same one goes on."""
NUMBERS = "precision.json"
"""What a checkpoint holds of the steps before it."""


@dataclass
class Halves:
    """`Hooks` of the trainer that sample for it, and pay for tokens of the first half of the vocabulary."""

    run: Run
    model: Any
    steps: list[dict[str, float]] = field(default_factory=list)
    validation: list[dict[str, float]] = field(default_factory=list)
    until: float | None = None
    """Training ends at the first checkpoint after this `time.monotonic`."""

    def __post_init__(self) -> None:
        self.vocabulary = int(self.model.config.vocab_size)
        self.engine = open_engine("auto", self.model, frozenset(), self.run.temperature, slots=PROMPTS * ROLLOUTS, copy=False)
        self.started = 0.0

    def sample(self, seed: int) -> tuple[Group, ...]:
        self.engine.refresh()
        requests = [
            Request(i, tuple(range(3 + i // ROLLOUTS, 19 + i // ROLLOUTS)), derive_seed(seed, i), TOKENS)
            for i in range(PROMPTS * ROLLOUTS)
        ]
        found = self.engine.advance(requests, TOKENS)
        while self.engine.active:
            found += self.engine.advance([], TOKENS)
        samples = {sample.key: sample for sample in found}
        groups = []
        for p, problem in enumerate(self.run.problems):
            trajectories = []
            for i in range(p * ROLLOUTS, (p + 1) * ROLLOUTS):
                ids, logprobs = samples[i].token_ids, samples[i].logprobs
                reward = sum(token < self.vocabulary / 2 for token in ids) / len(ids)
                verdict = Evaluation(Status.INCORRECT, "")
                turn = Turn(requests[i].context_ids, Completion(ids, logprobs, "", "length"), None, verdict, reward, "")
                trajectories.append(Trajectory(problem, (turn,)))
            groups.append(Group(problem, tuple(trajectories)))
        return tuple(groups)

    def validate(self, step: int) -> None:
        self.validation.append({"step": step, "reward": mean_reward(self.sample(seed=12345))})

    def rollout(self, step: int) -> tuple[Group, ...]:
        self.started = time.perf_counter()
        if step % EVERY == 0:
            self.validate(step)
        return self.sample(derive_seed(self.run.seed, "train", step))

    @contextmanager
    def lease(self) -> Iterator[None]:
        yield

    def step_done(self, facts: StepFacts) -> None:
        numbers = {
            "loss": facts.loss,
            "grad_norm": facts.grad_norm,
            "entropy": facts.entropy,
            "reward": mean_reward(facts.groups),
        }
        self.steps.append({"step": facts.step, "seconds": time.perf_counter() - self.started, **numbers})
        if facts.step == self.run.steps:
            self.validate(facts.step)

    def save(self, directory: Path) -> None:
        (directory / NUMBERS).write_text(json.dumps({"steps": self.steps, "validation": self.validation}))

    def enough(self) -> bool:
        return self.until is not None and time.monotonic() >= self.until

    def check_cancelled(self) -> None:
        """Nobody cancels a benchmark."""


def mean_reward(groups: Sequence[Group]) -> float:
    rewards = [trajectory.turns[0].reward for group in groups for trajectory in group.trajectories]
    return sum(rewards) / len(rewards)


def measure(weights: str, given: argparse.Namespace, until: float | None) -> dict[str, Any] | None:
    """Train one run from random weights, or from its last checkpoint. None where the time was up before its last step."""
    changes: dict[str, Any] = {"weights": weights, "learning_rate": given.learning_rate}
    run = make_run(PROMPTS, ROLLOUTS, 1, TOKENS, given.steps, **changes)
    model = random_model(given.shape, DEVICE, torch.float32).to(getattr(torch, weights))
    hooks = Halves(run, model, until=until)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary) if until is None else work(given) / weights
        directory.mkdir(parents=True, exist_ok=True)
        _, checkpoint, _ = checkpoints.newest(directory)
        if checkpoint is not None:
            numbers = json.loads((checkpoint / NUMBERS).read_text())
            hooks.steps, hooks.validation = numbers["steps"], numbers["validation"]
        trainer = KernelGRPOTrainer(run, model, load_small()[1], hooks, directory, checkpoint_every=given.save_every)
        if until is None:
            trainer.args.save_strategy = SaveStrategy.NO
        trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        if trainer.state.global_step < run.steps:
            return None
    shutil.rmtree(work(given) / weights, ignore_errors=True)
    return {"weights": weights, "steps": hooks.steps, "validation": hooks.validation}


def work(given: argparse.Namespace) -> Path:
    """Where checkpoints are."""
    return Path(f"{given.out}.work")


def show(runs: Sequence[dict[str, Any]]) -> None:
    console = Console(width=110)
    for name, columns in (("steps", ("loss", "reward", "entropy", "grad_norm")), ("validation", ("reward",))):
        names = [f"{run['weights']} {column}" for column in columns for run in runs]
        table = Table(name, *names)
        for rows in zip(*(run[name] for run in runs), strict=True):
            cells = [f"{row[column]:.4f}" for column in columns for row in rows]
            table.add_row(str(rows[0]["step"]), *cells)
        console.print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--shape", default="0.6b", choices=SHAPES)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--learning-rate", type=float, default=1e-5)
    parser.add_argument("--limit-seconds", type=float, help="end at the first checkpoint after so many seconds, and go on later")
    parser.add_argument("--save-every", type=int, default=25, help="steps between checkpoints, where there is a limit")
    given = parser.parse_args(arguments)
    until = None if given.limit_seconds is None else time.monotonic() + given.limit_seconds
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    settings = {"shape": given.shape, "learning_rate": given.learning_rate, "steps": given.steps}
    result: dict[str, Any] = {"device": device, "torch": torch.__version__, **settings, "runs": []}
    if until is not None and work(given).exists() and given.out.exists():
        result = json.loads(given.out.read_text())
        if any(result[name] != value for name, value in settings.items()):
            parser.error(f"--out: {given.out} is of { ({name: result[name] for name in settings}) }: name another file")
    if until is not None:
        work(given).mkdir(exist_ok=True)
    for weights in ("float32", "bfloat16")[len(result["runs"]) :]:
        done = measure(weights, given, until)
        result["runs"] += [] if done is None else [done]
        given.out.write_text(json.dumps(result, indent=1) + "\n")
        release()
        if done is None:
            print("time is up: the same command goes on", file=sys.stderr)
            sys.exit(AGAIN)
    shutil.rmtree(work(given), ignore_errors=True)
    show(result["runs"])


if __name__ == "__main__":
    main()
