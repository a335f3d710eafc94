"""Train a tiny model whole, then again with a SIGKILL at each of ten chosen moments, resuming every time.

    python tests/training/killed_runs.py MODEL OUT STALENESS WEIGHTS REFRESH_TOKENS      prints one JSON line per attempt

Run as a process of its own: libraries are imported once, and every attempt is a fork of this process, which never computes
anything itself (threads do not survive a fork).
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import anyio
import torch

from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.config import Run
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.interfaces import Removes
from rlkernel.policy.hf import HFPolicy
from rlkernel.runs import checkpoints, log
from rlkernel.runs import directory as rundir
from rlkernel.training import loop
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Evaluation, Group, Problem, Status
from tests.echo import EchoEnvironment

STEPS, KILLS = 12, 10


@dataclass(frozen=True)
class KeepSome:
    """A rejection that draws."""

    removes: Removes = "baseline"
    needs_ratios: ClassVar[bool] = True

    def __call__(self, group: Group, log_ratios_KTL: Any, kept_KTL: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        return kept_KTL & (torch.rand(kept_KTL.shape[:2], generator=generator) < 0.7)[..., None]


class Scripted:
    """An evaluator that answers at once, by the code's hash."""

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        await anyio.lowlevel.checkpoint()
        digest = hashlib.sha256(f"{problem.name} {code}".encode()).digest()
        if digest[0] < 128:
            return Evaluation(Status.CORRECT, "fine", speedup=digest[1] / 100, coverage=digest[2] / 255, timing="modelled")
        return Evaluation(Status.INCORRECT, "not fine")


def make_run(model: str, staleness: int, weights: str, refresh_tokens: int) -> Run:
    problems = tuple(Problem(f"train{i}", 1, "train", "") for i in range(3))
    return Run(
        name="killed",
        problems=(*problems, Problem("held_out", 1, "validation", "")),
        environment=EchoEnvironment(),
        reward=SpeedReward(),
        advantage=TRLOO(),
        credit=UniformCredit(),
        corrections=(KeepSome(),),
        model=model,
        turns=2,
        prompts_per_step=2,
        rollouts=2,
        max_new_tokens=8,
        steps=STEPS,
        learning_rate=1e-2,
        validation_every=4,
        validation_rollouts=2,
        staleness=staleness,
        refresh_tokens=refresh_tokens,
        weights=weights,
        updates=2,
    )


BETWEEN = "training: between two updates of a batch"
POINTS: dict[str, tuple[Any, str, int]] = {
    "rollout: sampling": (HFPolicy, "_advance", 4),
    "rollout: verdict": (Scripted, "evaluate", 8),
    "rollout: new weights": (HFPolicy, "refresh", 1),
    "training: micro-batch": (KernelGRPOTrainer, "compute_loss", 2),
    "training: update": (KernelGRPOTrainer, "_clip_grad_norm", 2),
    BETWEEN: (KernelGRPOTrainer, "_update", 1),
    "log: row": (log.RunLog, "write", 2),
    "log: half a row": (log, "_append", 4),
    "checkpoint: before the optimiser's state": (KernelGRPOTrainer, "_save_optimizer_and_scheduler", 1),
    "checkpoint: before the random state": (KernelGRPOTrainer, "_save_rng_state", 1),
    "checkpoint: before the batches ahead": (loop._Loop, "save", 1),
    "checkpoint: half deleted": (shutil, "rmtree", 1),
    "start: manifest and logs": (rundir, "replace_text", 3),
}
"""Where a kill may come -> whose method, and at most at which call of it after a start: about those of one step."""


def arm(point: str, call: int) -> None:
    """Kill this process when `point` is reached for the `call`-th time."""
    owner, name, _ = POINTS[point]
    original: Callable[..., Any] = getattr(owner, name)
    count = 0

    def reached(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == call:
            if point == "log: half a row":
                path, rows = args
                with path.open("a") as file:
                    file.write(json.dumps(rows[0])[:40])
            if point == "checkpoint: half deleted":
                next(path for path in Path(args[0]).iterdir() if path.is_file()).unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)

    setattr(owner, name, reached)


def choose(generator: random.Random) -> list[tuple[str, int]]:
    """Every kind of point at least once, in random order, at random calls."""
    kinds = sorted({point.partition(":")[0] for point in POINTS})
    points = [generator.choice([point for point in POINTS if point.startswith(kind)]) for kind in kinds]
    points += [BETWEEN, *generator.choices(sorted(POINTS), k=KILLS - len(points) - 1)]
    generator.shuffle(points)
    # Every other attempt may take its first step, so that it gets further than the one before. What comes once a start does not.
    later = [number % 2 and not point.startswith("start") for number, point in enumerate(points)]
    return [
        (point, generator.randint(1, POINTS[point][2]) + later[number] * POINTS[point][2]) for number, point in enumerate(points)
    ]


def attempt(run: Run, directory: Path, kill: tuple[str, int] | None) -> int:
    """The status of a process that trains until it is finished or killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if kill is not None:
                arm(*kill)
            anyio.run(lambda: loop.train(run, directory, evaluator=Scripted(), micro_tokens=512))
            code = 0
        except BaseException:  # told here, because nobody is above
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitpid(child, 0)[1]


def main(model: str, out: Path, staleness: int, weights: str, refresh_tokens: int) -> None:
    run = make_run(model, staleness, weights, refresh_tokens)
    for directory, kill in (
        (out / "whole", None),
        *((out / "killed", kill) for kill in choose(random.Random(staleness))),
        (out / "killed", None),
    ):
        status = attempt(run, directory, kill)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        kept = sorted(int(path.parent.name.split("-")[1]) for path in directory.glob(f"checkpoints/*/{checkpoints.COMPLETE}"))
        row = {"kill": kill, "signal": number, "status": 0 if number else os.WEXITSTATUS(status), "steps": kept[-1:]}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
