"""Train a tiny model in one process and in several, kill some, resume.

    python tests/training/several_processes.py MODEL OUT      prints one JSON line per attempt

A process of its own, whose attempts are forks, as in tests/training/killed_runs.py: libraries are imported once. What
`accelerate launch` does beside setting variables (ending all processes when one has ended) is left out, so that nobody is saved
by it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import anyio
import torch

from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.commands import asked, experiment
from rlkernel.config import Run
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import GOES_ON
from rlkernel.interfaces import Removes
from rlkernel.settings import Loss
from rlkernel.training import loop, ranks
from rlkernel.training.interruption import interruptible
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Group, Problem
from tests.echo import EchoEnvironment, ScriptedEvaluator

PATIENCE_SECONDS = 900
"""For the processes of an attempt, and for those that are left when one has ended: then they are killed, which is their status.
On a busy machine more than enough, and less than torch would let them wait for who is gone (30 minutes for gradients)."""


Command = Callable[[Run, Path, int], int]
"""What one process does; see `work`."""


@dataclass(frozen=True)
class RejectUnlikely:
    """Compares and draws: keeps the tokens near the rollout's log-probability, and not all turns."""

    removes: Removes = "baseline"
    needs_ratios: ClassVar[bool] = True

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        drawn_KT = torch.rand(kept_KTL.shape[:2], generator=generator) < 0.8
        return kept_KTL & (log_ratios_KTL.abs() < 0.05) & drawn_KT[..., None]


def make_run(model: str) -> Run:
    """9 rows per step."""
    problems = tuple(Problem(f"train{'n' * 9 * i}", 1, "train", "") for i in range(4))
    return Run(
        name="several",
        problems=(*problems, Problem("held_out", 1, "validation", "")),
        environment=EchoEnvironment(),
        reward=SpeedReward(),
        advantage=TRLOO(),
        credit=UniformCredit(),
        corrections=(RejectUnlikely(),),
        staleness=1,
        model=model,
        turns=2,
        prompts_per_step=3,
        rollouts=3,
        max_new_tokens=12,
        steps=2,
        learning_rate=1e-4,
        validation_every=2,
        validation_rollouts=1,
    )


def work(run: Run, directory: Path, micro_tokens: int) -> int:
    """The command of one process."""

    async def train() -> None:
        await loop.train(run, directory, evaluator=ScriptedEvaluator(), micro_tokens=micro_tokens)

    if anyio.run(interruptible, train):
        raise KeyboardInterrupt("told")
    return 0


def work_until_now(run: Run, directory: Path, micro_tokens: int) -> int:
    """A command whose time is up from the beginning, so that it ends at the first checkpoint."""

    async def train() -> bool:
        return await loop.train(run, directory, evaluator=ScriptedEvaluator(), micro_tokens=micro_tokens, until=time.monotonic())

    return 0 if anyio.run(train) else GOES_ON


def ask_for_help(run: Run, directory: Path, micro_tokens: int) -> int:
    """A command that ends in its flags: nothing is trained."""
    asked.parse("several", {run.name: run}, ["--help"])
    raise AssertionError("help was printed, and yet it went on")


def count_passes(path: Path) -> None:
    """Note the rows of every forward and backward pass of training."""
    original = KernelGRPOTrainer.compute_loss

    def noted(self: Any, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        with path.open("a") as file:
            file.write(json.dumps([self.state.global_step, len(inputs["tool_mask"]), int(inputs["tool_mask"].sum())]) + "\n")
        return original(self, model, inputs, *args, **kwargs)

    KernelGRPOTrainer.compute_loss = noted  # type: ignore[method-assign]


def strike(owner: Any, name: str, call: int, number: int) -> None:
    """Send this process a signal when a method of the trainer, or another function, is called for the `call`-th time."""
    original: Callable[..., Any] = getattr(owner, name)
    count = 0

    def reached(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == call:
            os.kill(os.getpid(), number)
        return original(*args, **kwargs)

    setattr(owner, name, reached)


def start(
    rank: int, size: int, port: int, command: Command, run: Run, directory: Path, micro_tokens: int, strikes: dict[int, Any]
) -> int:
    """The pid of one process, whose output goes to a file."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        said = os.open(directory.with_name(f"{directory.name}.said{rank}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(said, 1)
        os.dup2(said, 2)
        variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size, "MASTER_PORT": port}
        if size > 1:
            os.environ.update({name: str(value) for name, value in variables.items()}, MASTER_ADDR="127.0.0.1")
        count_passes(directory.with_name(f"{directory.name}.passes{rank}"))
        if rank in strikes:
            strike(*strikes[rank])
        code = experiment.lead_or_follow(lambda: command(run, directory, micro_tokens))
    except BaseException:  # told here, because nobody is above
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def attempt(
    name: str,
    size: int,
    run: Run,
    directory: Path,
    micro_tokens: int = 150,
    strikes: dict[int, Any] | None = None,
    command: Command = work,
) -> None:
    """Prints the statuses of the processes: minus the signal that killed one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    pids = [start(rank, size, port, command, run, directory, micro_tokens, strikes or {}) for rank in range(size)]
    statuses: dict[int, int] = {}
    limit = time.monotonic() + PATIENCE_SECONDS
    while len(statuses) < size:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            if not statuses:
                limit = time.monotonic() + PATIENCE_SECONDS
            statuses[pid] = os.waitstatus_to_exitcode(status)
        elif time.monotonic() > limit:
            for left in set(pids) - set(statuses):
                os.kill(left, signal.SIGKILL)
        else:
            time.sleep(0.02)
    print(json.dumps({"attempt": name, "statuses": [statuses[pid] for pid in pids]}), flush=True)


def main(model: str, out: Path) -> None:
    run = make_run(model)
    few = replace(run, prompts_per_step=1, rollouts=2, corrections=(), staleness=0, steps=1)
    for size in (1, 2):
        attempt("whole", size, run, out / f"whole{size}")
    losses = Loss(ratio="turn", clip_low=0.01, clip_high=0.01, beta=0.1, entropy=0.01)
    updates = replace(run, updates=3, epochs=2, loss=losses, turn_gradients=True, staleness=0, steps=1)
    for size in (1, 2):
        attempt("updates", size, updates, out / f"updates{size}")
    for size in (1, 3):
        attempt("few", size, few, out / f"few{size}")
    # Each ends in the second of two steps or in its checkpoint, and the next goes on.
    killed: Sequence[tuple[str, dict[int, Any]]] = (
        ("the first is killed", {0: (KernelGRPOTrainer, "_clip_grad_norm", 2, signal.SIGKILL)}),
        ("another is killed in a checkpoint", {1: (KernelGRPOTrainer, "_save_rng_state", 1, signal.SIGKILL)}),
        ("the first is interrupted", {0: (KernelGRPOTrainer, "compute_loss", 2, signal.SIGINT)}),
        ("goes on", {}),
    )
    for name, strikes in killed:
        attempt(name, 2, run, out / "killed", strikes=strikes)
    attempt("limit", 2, run, out / "limit", command=work_until_now)
    attempt("help", 2, run, out / "help", command=ask_for_help)
    gone = {1: (ranks, "leave", 1, signal.SIGKILL)}
    attempt("help, and another is killed at the end", 2, run, out / "gone", strikes=gone, command=ask_for_help)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
