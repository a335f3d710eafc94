"""The training loop: who does what, and who waits for whom.

    event loop (main thread)                                   trainer thread              sampling thread
    ------------------------                                   --------------              ---------------
    train: opens evaluator, policy, log
           awaits the trainer thread ------------------------> trainer.train()
                                                               step s: asks for rollouts
    rollout_groups <------------------- waits ---------------- (rollout)
      |- trajectory 1 .. n, each on its own:
      |     policy.generate ---- waits for its own tokens -----------------------------> rows in flight
      |     evaluator.evaluate - waits for its own verdict (processes of the pool)
      `- all done -------------------------------------------> forward, backward, update
    log row, validation <-------------- waits ---------------- (step_done)
                                                               checkpoint; step s + 1

Within a step, generation and evaluation overlap (without a GPU they share the cores, and sampling waits until most
trajectories want it: `open_policy`'s gather); between the steps there is a barrier, so that every sample comes from the
weights that it trains. Weights change only while no trajectory exists. The event loop is never blocked for longer than a
log row takes. Cancelling the event loop's task (Ctrl-C) cancels the trajectories at once and the trainer thread at its next
micro-batch; what was logged after the last complete checkpoint is dropped when the run goes on.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.from_thread
import anyio.to_thread
import torch

from rlkernel import rundir
from rlkernel.config import Run
from rlkernel.errors import UsageError, usage_error
from rlkernel.evaluator.pool import open_pool
from rlkernel.interfaces import Evaluator
from rlkernel.log import Display, RunLog, choose, open_wandb
from rlkernel.meter import Busy, MeteredEvaluator
from rlkernel.metrics import rollout_metrics
from rlkernel.policy.hf import HFPolicy, open_policy
from rlkernel.policy.load import load_model
from rlkernel.rollout import derive_seed, rollout_groups
from rlkernel.schedule import schedule
from rlkernel.trainer import KernelGRPOTrainer, StepFacts
from rlkernel.types import Group, Problem, Split

TRAIN_TRANSCRIPTS, VALIDATION_TRANSCRIPTS = 3, 8
"""Trajectories of one step that are kept as text."""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


@dataclass
class _Loop:
    """One run on the event loop; `Hooks` of the trainer, whose calls arrive from the trainer's thread."""

    run: Run
    directory: Path
    policy: HFPolicy
    evaluator: MeteredEvaluator
    log: RunLog
    display: Display
    _seconds: dict[str, float | None] = field(default_factory=dict)
    """Of the last rollouts."""

    def rollout(self, problems: Sequence[Problem], step: int) -> tuple[Group, ...]:
        seed = derive_seed(self.run.seed, "train", step)
        groups = anyio.from_thread.run(self._sample, problems, self.run.rollouts, seed, "rollouts")
        anyio.from_thread.run_sync(self.display.phase, "training")
        return groups

    def step_done(self, facts: StepFacts) -> None:
        anyio.from_thread.run(self._step_done, facts)

    def check_cancelled(self) -> None:
        anyio.from_thread.check_cancelled()

    async def validate(self, step: int) -> None:
        """Measure on the validation split. The same seeds each time, so that only the weights make a difference."""
        problems = [problem for problem in self.run.problems if problem.split == "validation"]
        seed = derive_seed(self.run.seed, "validation")
        groups = await self._sample(problems, self.run.validation_rollouts, seed, "validation")
        if rundir.read_manifest(self.directory)["timing"] is None:  # type: ignore[index]
            rundir.update_manifest(self.directory, timing=_timing(groups))
        self._write("validation", step, groups, {**rollout_metrics(groups), **self._seconds})

    async def _step_done(self, facts: StepFacts) -> None:
        self._write("train", facts.step, facts.groups, {**rollout_metrics(facts.groups), **_numbers(facts), **self._seconds})
        if facts.step % self.run.validation_every == 0 or facts.step == self.run.steps:
            await self.validate(facts.step)
        self.display.phase("checkpoint")

    async def _sample(self, problems: Sequence[Problem], rollouts: int, seed: int, what: str) -> tuple[Group, ...]:
        run = self.run
        self.policy.refresh()
        self.display.expect(what, len(problems) * rollouts * run.turns)
        generation, evaluation = self.policy.busy.seconds, self.evaluator.busy.seconds
        groups = await rollout_groups(
            problems,
            rollouts,
            self.policy,
            self.evaluator,
            run.environment,
            run.reward,
            run.turns,
            seed=seed,
            on_turn=self.display.turn_done,
        )
        evaluations = sum(len(trajectory.turns) for group in groups for trajectory in group.trajectories)
        seconds = self.evaluator.busy.seconds - evaluation
        self._seconds = {
            "seconds_generation": self.policy.busy.seconds - generation,
            "seconds_evaluation": seconds,
            "evaluations_per_second": evaluations / seconds if seconds > 0 else None,
        }
        return groups

    def _write(self, split: Split, step: int, groups: Sequence[Group], values: Mapping[str, Any]) -> None:
        limit = TRAIN_TRANSCRIPTS if split == "train" else VALIDATION_TRANSCRIPTS
        chosen = choose(groups, limit)
        prompts = {t.problem.name: self.run.environment.prompt(t.problem) for t in chosen}
        self.log.write_transcripts(split, step, prompts, chosen)
        self.log.write(split, step, values)
        self.display.row(split, step, values)


def _numbers(facts: StepFacts) -> dict[str, float | None]:
    return {
        "loss": facts.loss,
        "grad_norm": facts.grad_norm,
        "learning_rate": facts.learning_rate,
        "entropy": facts.entropy,
        "clip_fraction": facts.clip_fraction,
        "mismatch": facts.mismatch,
        "kept_turns": facts.trained_turns / facts.turns,
        "kept_tokens": facts.trained_tokens / facts.tokens,
        **{f"rejected_{name}": turns / facts.turns for name, turns in facts.rejected.items()},
        "seconds_rollout": facts.seconds_rollout,
        "seconds_training": facts.seconds_step - facts.seconds_rollout,
    }


def _timing(groups: Sequence[Group]) -> str | None:
    """`modelled` or `measured`; None while no candidate was timed. Raises RuntimeError if the evaluator mixes them."""
    turns = [turn for group in groups for trajectory in group.trajectories for turn in trajectory.turns]
    found = {turn.evaluation.timing for turn in turns} - {None}
    if len(found) > 1:
        raise RuntimeError("one evaluator gave both modelled and measured times, which must not be mixed")
    return next(iter(found), None)


async def train(
    run: Run,
    directory: Path,
    *,
    evaluator: Evaluator | None = None,
    cache_dir: Path | None = None,
    checkpoint_every: int = 1,
    micro_batch: int = 8,
) -> None:
    """Train one run in its own directory: from the start, from its last complete checkpoint, or not at all if it is finished.

    evaluator: an open one to share; without it, one is opened for `run.device` with results cached in `cache_dir`.
    checkpoint_every: steps between checkpoints. micro_batch: at most so many trajectories in one forward pass. Neither changes
    what is computed. Raises UsageError for a run or directory that cannot be used.
    """
    with ExitStack() as held:
        held.enter_context(rundir.owned(directory))
        start = rundir.begin(directory, run)
        if start.finished:
            return
        _check_problems(run)
        going = "starting" if start.checkpoint is None else f"resuming after step {start.step} of {run.steps}"
        print(f"{run.name} seed {run.seed}: {going}", file=sys.stderr, flush=True)
        model, tokenizer = load_model(run.model)
        manifest = rundir.read_manifest(directory)
        assert manifest is not None
        remote = held.enter_context(open_wandb(directory, run, manifest["wandb_id"]))
        display = held.enter_context(Display(run, start.step))
        evaluating = Busy()
        async with (
            nullcontext(evaluator) if evaluator else _open_evaluator(run.device, run.jobs, cache_dir) as judge,
            open_policy(
                model,
                tokenizer,
                max_new_tokens=run.max_new_tokens,
                temperature=run.temperature,
                # Without a GPU, sampling takes the evaluations' cores.
                gather=None if torch.cuda.is_available() else evaluating,
            ) as policy,
        ):
            loop = _Loop(run, directory, policy, MeteredEvaluator(judge, evaluating), RunLog(directory, remote), display)
            training = [problem for problem in run.problems if problem.split == "train"]
            trainer = KernelGRPOTrainer(
                run,
                model,
                tokenizer,
                training,
                schedule(len(training), run.prompts_per_step, run.steps, run.seed),
                loop,
                directory / "checkpoints",
                micro_batch=micro_batch,
                checkpoint_every=checkpoint_every,
            )
            if start.checkpoint is None:
                await loop.validate(0)
            await anyio.to_thread.run_sync(trainer.train, str(start.checkpoint) if start.checkpoint else None)
        rundir.finish(directory)


def _check_problems(run: Run) -> None:
    for split in ("train", "validation"):
        if not any(problem.split == split for problem in run.problems):
            raise UsageError(f"Run.problems of {run.name!r} has none with split {split!r}: add one")


@asynccontextmanager
async def _open_evaluator(device: str, jobs: int, cache_dir: Path | None) -> AsyncIterator[Evaluator]:
    async with AsyncExitStack() as stack:
        try:
            pool = await stack.enter_async_context(open_pool(device=device, jobs=jobs, cache_dir=cache_dir))
        except ValueError as error:
            raise UsageError(f"Run.device or Run.jobs: {error}") from error
        yield pool


async def train_all(jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path | None = None, checkpoint_every: int = 1) -> None:
    """Train runs one after another, with one evaluator for neighbours that use the same device and jobs.

    Finished runs are skipped. Raises UsageError before anything is trained if one of the directories holds another run.
    """
    waiting = [(run, directory) for run, directory in jobs if not rundir.finished(directory, run)]
    while waiting:
        device, lanes = waiting[0][0].device, waiting[0][0].jobs
        async with _open_evaluator(device, lanes, cache_dir) as pool:
            while waiting and (waiting[0][0].device, waiting[0][0].jobs) == (device, lanes):
                run, directory = waiting.pop(0)
                await train(run, directory, evaluator=pool, checkpoint_every=checkpoint_every)


def main(jobs: Sequence[tuple[Run, Path]], *, cache_dir: Path | None = None, checkpoint_every: int = 1) -> int:
    """Train runs from a command line. Returns the exit status: 0 when all are finished, 2 after one line about what is
    unusable, 130 after Ctrl-C or SIGTERM, with nothing left behind and every run ready to go on."""

    async def body() -> bool:
        interrupted = False

        async def watch(scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]) -> None:
            nonlocal interrupted
            with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                task_status.started()
                async for _ in signals:
                    interrupted = True
                    scope.cancel()

        async with anyio.create_task_group() as tasks:
            await tasks.start(watch, tasks.cancel_scope)
            await train_all(jobs, cache_dir=cache_dir, checkpoint_every=checkpoint_every)
            tasks.cancel_scope.cancel()
        return interrupted

    try:
        interrupted = anyio.run(body)
    except KeyboardInterrupt:
        interrupted = True
    except BaseException as error:
        usage = usage_error(error)
        if usage is None:
            raise
        print(f"error: {usage}", file=sys.stderr)
        return 2
    if interrupted:
        print("interrupted: the same command goes on from the last checkpoint", file=sys.stderr)
        return INTERRUPTED
    return 0
