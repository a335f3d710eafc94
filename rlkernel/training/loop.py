"""The training loop: who does what, and who waits for whom.

    event loop (main thread)                                   trainer thread              sampling thread
    ------------------------                                   --------------              ---------------
    train: opens evaluator, policy, log
           awaits the trainer thread ------------------------> trainer.train()
                                                               step s: asks for its batch
    _batch <--------------------------- waits ---------------- (rollout)
      |- trajectory 1 .. n, each on its own:
      |     policy.generate ---- waits for its own tokens -----------------------------> rows in flight
      |     evaluator.evaluate - waits for its own verdict (processes of the pool)
      `- all done -------------------------------------------> forward, backward, update, for each minibatch
    _step_done: row, validation <------ waits ---------------- (step_done)
                                                               checkpoint; step s + 1

Trajectories wait for nobody, so generation and evaluation overlap. `Run.staleness` says what overlaps with training.
In brackets is a batch's age when it trains, the number of steps between the weights that sampled it and those that it updates:

    0   sample 1 (0) | train 1             | sample 2 (0) | train 2      | ...    every batch comes from the weights it updates
    1   sample 1 (0) | train 1             | train 2      | train 3      | ...    sampled one step behind, from a copy of the
                     | sample 2 (1)        | sample 3 (1) | sample 4 (1) | ...    weights made before a step's first update
    2   sample 1 (0) | train 1             | train 2      | train 3      | ...    two steps behind: beside training, one batch
                     | sample 2 (1), 3 (2) | sample 4 (2) | sample 5 (2) | ...    waits and one is being sampled

With staleness n, at most n batches wait or are being sampled (`Ahead`), and batch b + n is always sampled from the weights before
step b. Nobody's speed decides which weights sample: more than 1 makes batches older and not faster. Only with in-flight refresh
(`Run.refresh_tokens`, drawn in `sampling`) does it buy speed: a trajectory then spans steps, and no step waits for a whole one.

Rows, validation and the checkpoint wait for everything that was started: what `_step_done` sees is all there is, so a run that is
killed anywhere, between two updates of a batch too, goes on from its last complete checkpoint as if it had not been. The
checkpoint holds the batches that are ready and, token by token, the trajectories that are under way; what was logged after it is
dropped (`rundir.begin`).

Who waits for a GPU: `rlkernel.training.placement`. A candidate measures alone on its card. Where the policy shares it, one queue
serves candidates and, a few tokens at a time, sampling; beside evaluations (staleness) also training, a micro-batch at a time.
On two or more GPUs nobody but candidates queues. Without a GPU, sampling and evaluations share the cores, and sampling waits
until most trajectories want it (`open_policy`'s gather).

Where several processes train a run (`rlkernel.training.ranks`), this is the first of them. The others
(`rlkernel.training.follower`) get each batch when the trainer here gets it, and a checkpoint is complete when all have written
what they add to it.

The event loop is never blocked for longer than a log row takes. Cancelling its task (Ctrl-C) cancels the trajectories at once and
the trainer thread at its next micro-batch.
"""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import anyio.abc
import anyio.from_thread
import anyio.to_thread
import torch
from anyio.from_thread import BlockingPortal

from rlkernel.busy import Busy
from rlkernel.config import Run
from rlkernel.evaluator.config import check_for_training
from rlkernel.interfaces import CardEvaluator, Evaluator
from rlkernel.metrics import rollout_metrics, timing
from rlkernel.policy.hf import open_policy
from rlkernel.policy.load import load_model
from rlkernel.rollout import derive_seed
from rlkernel.runs import directory as rundir
from rlkernel.runs.log import Display, RunLog, choose
from rlkernel.runs.outcomes import write_outcomes
from rlkernel.runs.wandb import open_wandb
from rlkernel.training import ranks, sharding
from rlkernel.training.ahead import Ahead
from rlkernel.training.diagnostics import ages
from rlkernel.training.draws import Draws
from rlkernel.training.follower import Job
from rlkernel.training.hooks import StepFacts
from rlkernel.training.memory import MICRO_TOKENS, SLOTS
from rlkernel.training.meter import MeteredEvaluator, Meters, per_second
from rlkernel.training.placement import describe, evaluator_of, open_evaluator
from rlkernel.training.preflight import check_memory, check_problems, plan_here
from rlkernel.training.returns import try_advantage
from rlkernel.training.sampling import Sampling
from rlkernel.training.spread import copies, over_processes
from rlkernel.training.threads import cancellation, in_daemon, in_thread, on_loop
from rlkernel.types import Group, Split

TRAIN_TRANSCRIPTS, VALIDATION_TRANSCRIPTS = 3, 8
"""Trajectories of one training step, and of one validation, that are kept as text."""
OWN_NUMBER = "trained_tokens_per_second"
"""The loop's own part of a training row, beside `StepFacts.numbers`, `Meters.lap`, `ages` and `rollout_metrics`."""


@dataclass
class _Loop:
    """One run on the event loop; `Hooks` of the trainer, whose calls arrive from the trainer's thread."""

    run: Run
    directory: Path
    sampling: Sampling
    meters: Meters
    log: RunLog
    display: Display
    tasks: anyio.abc.TaskGroup
    portal: BlockingPortal
    shared: CardEvaluator | None
    """The evaluator, if training meets its evaluations on a card; else None."""
    until: float | None = None
    """Training ends at the first checkpoint after this `time.monotonic`; None: never."""
    _coming: anyio.Event | None = None
    """Set when everything that is sampled beside training has gone as far as it may."""

    # From the trainer's thread

    def rollout(self, step: int) -> tuple[Group, ...]:
        groups = on_loop(self._batch, step)
        ranks.send(groups)
        return groups

    def step_done(self, facts: StepFacts) -> None:
        on_loop(self._step_done, facts)
        ranks.send(None)

    def save(self, directory: Path) -> None:
        ranks.meet()
        self.sampling.draws.write(directory)
        self.sampling.ahead.write(directory)
        rundir.sync_rows(self.directory)

    def enough(self) -> bool:
        stop = self.until is not None and time.monotonic() >= self.until
        ranks.send(stop)
        return stop

    def check_cancelled(self) -> None:
        anyio.from_thread.check_cancelled()

    @contextmanager
    def lease(self) -> Iterator[None]:
        if self.shared is None:
            yield
            return
        with cancellation(), self.portal.wrap_async_context_manager(self.shared.lease()):
            yield
            torch.cuda.synchronize()

    # On the event loop

    async def validate(self, step: int) -> None:
        """Measure on the validation split. The same seeds each time, so that only the weights make a difference."""
        problems = [problem for problem in self.run.problems if problem.split == "validation"]
        seed = derive_seed(self.run.seed, "validation")
        await self.sampling.refresh(step)
        turns = self.run.validation_turns or self.run.turns
        groups = await self.sampling.groups(problems, self.run.validation_rollouts, turns, seed, "validation")
        if rundir.read_manifest(self.directory)["timing"] is None:  # type: ignore[index]
            rundir.update_manifest(self.directory, timing=timing(groups))
        self._write("validation", step, groups, self.meters.lap())

    async def _batch(self, step: int) -> tuple[Group, ...]:
        """The batch of step `step`, from 0; with staleness, those of later steps are then on their way."""
        with self.meters.rollout():
            groups = await self.sampling.batch(step)
            if self.sampling.later(step):
                # The copy must be complete before the trainer may change the weights.
                await self.sampling.refresh(step)
                self._coming = anyio.Event()
                self.tasks.start_soon(self._beside, step, self._coming)
        self.meters.training.begin()
        self.display.phase("training")
        return groups

    async def _beside(self, step: int, done: anyio.Event) -> None:
        await self.sampling.beside(step)
        done.set()

    async def _step_done(self, facts: StepFacts) -> None:
        self.meters.training.end()
        if self._coming is not None:
            with self.meters.rollout():
                await self._coming.wait()
            self._coming = None
        laps = self.meters.lap()
        speed = per_second(facts.tokens, laps["seconds_training"])
        aged = ages(facts.groups, facts.step - 1, by_turn=self.run.refresh_tokens > 0)
        numbers = {**facts.numbers(), **laps, **aged, OWN_NUMBER: speed}
        self._write("train", facts.step, facts.groups, numbers)
        if facts.step % self.run.validation_every == 0 or facts.step == self.run.steps:
            await self.validate(facts.step)
        self.display.phase("checkpoint")

    def _write(self, split: Split, step: int, groups: Sequence[Group], numbers: Mapping[str, float | None]) -> None:
        values = {**rollout_metrics(groups), **numbers}
        chosen = choose(groups, TRAIN_TRANSCRIPTS if split == "train" else VALIDATION_TRANSCRIPTS)
        prompts = {t.problem.name: self.run.environment.prompt(t.problem) for t in chosen}
        self.log.write_transcripts(split, step, prompts, chosen)
        if split == "validation":
            write_outcomes(self.directory, split, step, groups)
        self.log.write(split, step, values)
        self.display.row(split, step, values)


async def train(
    run: Run,
    directory: Path,
    *,
    evaluator: Evaluator | None = None,
    cache_dir: Path | None = None,
    checkpoint_every: int = 1,
    micro_tokens: int = MICRO_TOKENS,
    until: float | None = None,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> bool:
    """Train one run in its own directory: from the start, from its last complete checkpoint, or not at all if it is finished.
    Returns whether it is finished now.

    evaluator: an open one to share; without it, one is opened for `run.device` with results cached in `cache_dir`.
    checkpoint_every: steps between checkpoints. micro_tokens: at most so many in one forward pass of training. until: end at the
    first checkpoint after this `time.monotonic`. labels: what the manifest and W&B say of the command, e.g. its `experiment` and
    `preset`. None of them changes what is computed. Raises UsageError for a run or directory
    that cannot be used.
    """
    if not rundir.finished(directory, run):  # what the run cannot begin with leaves no directory behind
        check_problems(run)
        try_advantage(run.advantage, run.rollouts, run.turns)
    with ExitStack() as held:
        held.enter_context(rundir.owned(directory))
        start = rundir.begin(directory, run)
        if start.finished:
            return True
        for line in start.told:
            print(line, file=sys.stderr)
        sharding.check(run)
        await in_daemon(check_memory, run, micro_tokens)
        going = "starting" if start.checkpoint is None else f"resuming after step {start.step} of {run.steps}"
        print(f"{run.name} seed {run.seed}: {going}", file=sys.stderr, flush=True)
        model, tokenizer = await in_daemon(_load, run)
        display = held.enter_context(Display(run, start.step))
        job = Job(run, directory, start.checkpoint, checkpoint_every, micro_tokens)
        opening = open_evaluator(evaluator_of(run), cache_dir)
        async with nullcontext(evaluator) if evaluator else opening as judge:
            described = describe(judge)
            check_for_training(described)
            manifest = rundir.update_manifest(directory, evaluator=described, labels=dict(labels))
            log = RunLog(directory, held.enter_context(open_wandb(directory, run, manifest)))
            await in_thread(ranks.send, job)
            async with _open_loop(job, model, tokenizer, judge, log, display) as loop:
                loop.until = until
                trainer = job.make_trainer(model, tokenizer, loop)
                if start.checkpoint is None:
                    await loop.validate(0)
                await in_thread(ranks.send, None)
                await in_thread(trainer.train, job.resume)
        finished: bool = trainer.state.global_step == run.steps
        if finished:
            log.finish()
            rundir.finish(directory)
        return finished


@asynccontextmanager
async def _open_loop(
    job: Job, model: Any, tokenizer: Any, judge: Evaluator, log: RunLog, display: Display
) -> AsyncIterator[_Loop]:
    """A run's loop with its policy on its card, its meters and its schedule."""
    run, evaluating = job.run, Busy()
    pool = judge if isinstance(judge, CardEvaluator) else None
    shared = pool if pool is not None and pool.shares else None
    problems = [problem for problem in run.problems if problem.split == "train"]
    draws = Draws(problems, run.sampler, run.prompts_per_step, run.seed, job.checkpoint)
    async with (
        open_policy(
            model,
            tokenizer,
            max_new_tokens=run.max_new_tokens,
            temperature=run.temperature,
            engine=run.engine,
            # With in-flight refresh, several batches are sampled at a time.
            slots=SLOTS * (run.staleness if run.refresh_tokens else 1),
            copy=copies(run),
            around=over_processes(run),
            dtype=run.rollout_dtype,
            cache_bytes=plan_here(run, model.config, job.micro_tokens).cache_bytes,
            # Without a GPU, sampling takes the evaluations' cores.
            gather=None if torch.cuda.is_available() else evaluating,
            lease=nullcontext if shared is None else shared.lease,
        ) as policy,
        BlockingPortal() as portal,
        anyio.create_task_group() as tasks,
    ):
        metered = MeteredEvaluator(judge, evaluating)
        yield _Loop(
            run,
            job.directory,
            Sampling(run, policy, metered, display, draws, Ahead.read(job.checkpoint)),
            Meters(policy, metered, lambda: None if pool is None else pool.waited_seconds),
            log,
            display,
            tasks,
            portal,
            shared if run.staleness else None,
        )


def _load(run: Run) -> tuple[Any, Any]:
    """The run's model and tokenizer, on the card where there is one."""
    model, tokenizer = load_model(run.model, weights=run.weights, lora_rank=run.lora_rank, lora_alpha=run.lora_alpha)
    if torch.cuda.is_available():
        model.to("cuda")
    return model, tokenizer
