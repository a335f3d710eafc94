"""What the further processes of a run do: they sample and train their share of every batch, own nothing and print nothing.

Rank 0 decides (`rlkernel.training.loop.train`) which run is next, when a step begins and with which batch, and when all is
done. When it is gone, the others end; Ctrl-C is its affair.
"""

from __future__ import annotations

import gc
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rlkernel.config import Run
from rlkernel.policy.load import load_model
from rlkernel.training import ranks
from rlkernel.training.hooks import Hooks, StepFacts
from rlkernel.training.spread import Advance, Refresh, Sampler, sampler_of
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Group


@dataclass(frozen=True)
class Job:
    """A run as all of its processes train it. checkpoint: where to go on; the rest as `rlkernel.training.loop.train` has it."""

    run: Run
    directory: Path
    checkpoint: Path | None
    checkpoint_every: int
    micro_tokens: int

    @property
    def resume(self) -> str | None:
        """The checkpoint as the trainer's `train` takes it."""
        return None if self.checkpoint is None else str(self.checkpoint)

    def make_trainer(self, model: Any, tokenizer: Any, hooks: Hooks) -> KernelGRPOTrainer:
        checkpoints = self.directory / "checkpoints"
        changes = {"micro_tokens": self.micro_tokens, "checkpoint_every": self.checkpoint_every}
        return KernelGRPOTrainer(self.run, model, tokenizer, hooks, checkpoints, **changes)


class Following:
    """`Hooks` of a process that is not the first: batches come from there, and the rest happens there. While the first one makes
    a batch, or measures, this one samples for it."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    def rollout(self, step: int) -> tuple[Group, ...]:
        groups: tuple[Group, ...] = self.serve()
        return groups

    def serve(self) -> Any:
        """Sample what the first process asks for, until it sends something else; return that."""
        while isinstance(message := ranks.receive(), (Refresh, Advance)):
            self._sampler.answer(message)
        return message

    def save(self, directory: Path) -> None:
        ranks.meet()

    def enough(self) -> bool:
        stop: bool = ranks.receive()
        return stop

    @contextmanager
    def lease(self) -> Iterator[None]:
        """Training has this process's card to itself (`rlkernel.training.placement`)."""
        yield

    def step_done(self, facts: StepFacts) -> None:
        """The first process writes the row, and may measure."""
        self.serve()

    def check_cancelled(self) -> None:
        """The first process decides; its end is noticed by the connection that it closes."""


def follow() -> int:
    """Train what rank 0 sends until it sends None. Returns the exit status: 0, or 1 when another process is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore")
    try:
        while (job := ranks.receive()) is not None:
            _train(job)
            gc.collect()
            torch.cuda.empty_cache()
        ranks.leave()
    except ranks.Lost:
        return 1
    return 0


def _train(job: Job) -> None:
    run = job.run
    model, tokenizer = load_model(run.model, weights=run.weights, lora_rank=run.lora_rank, lora_alpha=run.lora_alpha)
    if torch.cuda.is_available():
        torch.cuda.set_device(ranks.local_rank())
        model.to("cuda")
    hooks = Following(sampler_of(run, model, tokenizer, job.micro_tokens))
    trainer = job.make_trainer(model, tokenizer, hooks)
    hooks.serve()
    trainer.train(job.resume)
