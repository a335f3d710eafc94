"""The command's side of runs that train side by side: it starts trainer processes, deals out runs and judges for all of them."""

from __future__ import annotations

import io
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any

import anyio
import anyio.abc
from anyio.streams.text import TextReceiveStream

from rlkernel.config import Run
from rlkernel.errors import BrokenReference, EndedElsewhere, EvaluatorFailed, UsageError
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.ray.pool import RayPool
from rlkernel.interfaces import CardEvaluator
from rlkernel.runs import directory as rundir
from rlkernel.training import jobs as neighbours
from rlkernel.training.placement import SIDE_BY_SIDE, EvaluatorDemand, evaluator_of
from rlkernel.training.side_by_side.channel import (
    GONE,
    Assignment,
    Candidate,
    Channel,
    Ended,
    GivenBack,
    Lent,
    Verdict,
    Wanted,
    open_channel,
)
from rlkernel.training.side_by_side.evaluators import Evaluators
from rlkernel.training.side_by_side.start import command_line
from rlkernel.training.threads import in_daemon

STOP_SECONDS = 60.0
"""How long a trainer process may take to stop, in the middle of a checkpoint for instance, before it is killed."""
WORDS_SECONDS = 2.0
"""How long the last words of a process that has ended are waited for: a process of its own may keep the pipe open."""


@dataclass
class _Deal:
    """The runs of a command and what they have in common."""

    waiting: list[tuple[Run, Path]]
    cache_dir: Path | None
    checkpoint_every: int
    until: float | None
    labels: Mapping[str, str]
    begun: int = 0
    stopped: bool = False
    """Whether a run stopped at its limit, or has not begun because of it."""
    failed: Exception | None = None
    """The first error of a run."""

    def next(self) -> tuple[Run, Path] | None:
        """The next run; None where there is none, or its time is over. The first one always begins."""
        over = self.until is not None and time.monotonic() >= self.until
        if not self.waiting or (self.begun and (over or self.stopped)):
            self.stopped = self.stopped or bool(self.waiting)
            return None
        self.begun += 1
        return self.waiting.pop(0)

    def assignment(self, run: Run, directory: Path, pool: Pool | RayPool) -> Assignment:
        """What a trainer process is told of a run that this evaluator judges."""
        programs = None if self.cache_dir is None else self.cache_dir.parent / "programs"
        judged_by = (pool.config, pool.describe(), pool.shares)
        return Assignment(run, directory, self.checkpoint_every, self.until, dict(self.labels), programs, *judged_by)

    def expects(self, demand: EvaluatorDemand) -> bool:
        """Whether a run that has not begun wants this evaluator."""
        return any(evaluator_of(run) == demand for run, _ in self.waiting)


async def train_side_by_side(
    jobs: Sequence[tuple[Run, Path]],
    *,
    together: int,
    cache_dir: Path | None,
    checkpoint_every: int,
    until: float | None,
    labels: Mapping[str, str],
) -> bool:
    """Train runs as `rlkernel.training.command.train_all` does, at most `together` at a time. Returns whether all are finished.
    Raises the UsageError or EndedElsewhere of the first run that has one; the others stop where they are."""
    waiting = [(run, directory) for run, directory in jobs if not rundir.finished(directory, run)]
    if not waiting:
        return True
    await in_daemon(neighbours.check, [run for run, _ in waiting])
    count = min(together, len(waiting))
    deal = _Deal(waiting, cache_dir, checkpoint_every, until, labels)
    async with anyio.create_task_group() as opening:
        evaluators = Evaluators(opening, cache_dir, deal.expects)
        async with anyio.create_task_group() as trainers:
            for _ in range(count):
                trainers.start_soon(_train, deal, evaluators, count, trainers.cancel_scope)
        opening.cancel_scope.cancel()  # an evaluator that was kept for runs whose time is over
    if deal.failed is not None:  # one alone, not all that cancelled each other
        raise deal.failed
    return not deal.stopped


async def _train(deal: _Deal, evaluators: Evaluators, count: int, trainers: anyio.CancelScope) -> None:
    """One trainer process, from the first run that it is given to the last. An error of a run cancels all `trainers`."""
    job = deal.next()
    if job is None:
        return
    async with _open_trainer(count) as (process, channel):
        while job is not None:
            run, directory = job
            async with evaluators.use(evaluator_of(run)) as pool:
                ended = None
                try:
                    ended = await _Trainer(channel, pool).train(deal.assignment(run, directory, pool))
                except* GONE:
                    with anyio.move_on_after(STOP_SECONDS):
                        await process.wait()
                failed = _error(run, ended, process.returncode)
                if failed is not None or ended is None:
                    deal.failed = deal.failed or failed
                    trainers.cancel()
                    return
            deal.stopped = deal.stopped or not ended.finished
            job = deal.next()


def _error(run: Run, ended: Ended | None, status: int | None) -> Exception | None:
    """The error of a run, if it has one. ended: None where its process has ended, with `status`, before the run."""
    if ended is not None:
        if not ended.told:
            return None
        return UsageError(ended.told) if ended.status == 2 else EndedElsewhere(ended.told, ended.status)
    what = f"the process that trained {run.name} seed {run.seed}"
    if status is not None and status < 0:
        why = f"{what} was killed by {signal.Signals(-status).name}, by the kernel itself where memory is short"
        return UsageError(f"{why}: give the same command, which goes on; --together 1 takes less memory")
    return EndedElsewhere(f"{what} ended with status {status}: what it said is above", 1)


@dataclass
class _Trainer:
    """A trainer process while it has one run: answers what it asks."""

    channel: Channel
    pool: CardEvaluator
    _lent: dict[int, anyio.Event] = field(default_factory=dict)

    async def train(self, assignment: Assignment) -> Ended:
        """The end of an assignment. Raises one of `GONE` when the process is gone."""
        # A large one is not read before the process has imported all it needs, which Ctrl-C does not wait for.
        await self.channel.send(assignment, last=True)
        async with anyio.create_task_group() as answers:
            while True:
                match message := await self.channel.receive():
                    case Ended():
                        ended = message
                        break
                    case Candidate():
                        answers.start_soon(self._judge, message)
                    case Wanted(number):
                        self._lent[number] = anyio.Event()
                        answers.start_soon(self._lend, number)
                    case GivenBack(number):
                        self._lent.pop(number).set()
            answers.cancel_scope.cancel()  # what the run asked for and no longer waits for
        return ended

    async def _judge(self, asked: Candidate) -> None:
        try:
            evaluation = await self.pool.evaluate(asked.problem, asked.code)
        except (BrokenReference, EvaluatorFailed) as error:
            verdict = Verdict(asked.number, None, str(error), isinstance(error, BrokenReference))
        else:
            verdict = Verdict(asked.number, evaluation, waited=self.pool.waited_seconds)
        await self.channel.send(verdict)

    async def _lend(self, number: int) -> None:
        given_back = self._lent[number]
        async with self.pool.lease():
            if not given_back.is_set():
                await self.channel.send(Lent(number, self.pool.waited_seconds))
                await given_back.wait()


@asynccontextmanager
async def _open_trainer(count: int) -> AsyncIterator[tuple[anyio.abc.Process, Channel]]:
    """A trainer process, one of `count`, whose words are repeated here line by line. Leaving the context stops it."""
    ours, theirs = socket.socketpair()
    environment = {**os.environ, SIDE_BY_SIDE: str(count)}
    async with open_channel(ours) as channel, anyio.create_task_group() as tasks:
        with theirs:
            process = await anyio.open_process(
                command_line(theirs),
                stdin=subprocess.DEVNULL,
                stdout=None,
                stderr=subprocess.PIPE,
                env=environment,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,  # Ctrl-C is the command's affair, which then stops this one
            )
        said = anyio.Event()
        tasks.start_soon(_repeat, process, said)
        try:
            yield process, channel
            await channel.close()  # it has nothing to do, and ends
        except BaseException:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await _ended(process)
                with anyio.move_on_after(WORDS_SECONDS):
                    await said.wait()
            tasks.cancel_scope.cancel()


async def _ended(process: anyio.abc.Process) -> None:
    """Wait for the end of a process that was told to stop, or has nothing to do."""
    with anyio.move_on_after(STOP_SECONDS):
        await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _repeat(process: anyio.abc.Process, said: anyio.Event) -> None:
    """Repeat what a process says on standard error, line by line, so that two do not write into each other's lines. said: is set
    when that was all."""
    assert process.stderr is not None
    rest = ""
    try:
        async for text in TextReceiveStream(process.stderr, errors="replace"):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                print(line, file=sys.stderr, flush=True)
    finally:
        if rest:
            print(rest, file=sys.stderr, flush=True)
        said.set()


def portable(jobs: Sequence[tuple[Run, Path]]) -> bool:
    """Whether another process can read the runs: not where a class of theirs is in the script that was started, which a trainer
    process does not run."""
    try:
        _Portable(io.BytesIO()).dump([run for run, _ in jobs])
    except (pickle.PicklingError, AttributeError, TypeError):  # e.g. a class that a function has made
        return False
    return True


class _Portable(pickle.Pickler):
    """Pickles what any process can read. Raises PicklingError for the rest."""

    def reducer_override(self, value: Any) -> Any:
        """Leave everything to pickle, but for the script's own classes and functions."""
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            raise pickle.PicklingError(f"{value.__qualname__} is in the script that was started")
        return NotImplemented
