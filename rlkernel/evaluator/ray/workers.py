"""The actors of a Ray cluster as the driver sees them: where they may live, who has room, and what becomes of their deaths.

    watch    every few seconds: a place that is new gets its own `_keep`
    _keep    start an actor in this place, wait until it is lost, start the next one, until the place is gone or given up
    seat     what an evaluation holds: room on one actor, or all of it

A place is a GPU of a node or, in a cluster without GPUs, a node. Actors never move: a node that dies takes its places along, and
one that joins brings its own. Ray restarts nothing by itself, because only here it is known which evaluations were lost.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread

from rlkernel.errors import UsageError, one_line
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.ray.actor import Actor, Answer, Hello
from rlkernel.evaluator.ray.places import Place, find_places, last_line, list_nodes
from rlkernel.evaluator.version import source_version
from rlkernel.types import Problem

START_SECONDS = 180.0
"""For an actor to get its resources, and as long again to open its pool."""
STOP_SECONDS = 20.0
"""For a pool to close; then its actor is killed."""
WATCH_SECONDS = 5.0
"""Between two looks at the nodes."""
MOST_DEATHS = 3
"""Of actors in one place, one after the other, none of which gave an answer: then the place is given up."""
NODE_SECONDS = 30.0
"""For Ray to notice that a node has died."""
LOOK_SECONDS = 1.0
"""Between two looks at a node that may have."""


class WorkerLost(Exception):
    """The actor, or its node, ended or cannot go on. One line."""


class Refused(Exception):
    """No actor of this place can be used. One line. unusable: the cluster must be changed."""

    def __init__(self, line: str, *, unusable: bool = False) -> None:
        super().__init__(line)
        self.unusable = unusable


class Worker:
    """One actor with an open pool."""

    def __init__(self, ray: Any, place: Place, handle: Any, served: Any, hello: Hello) -> None:
        self.place = place
        self.hello = hello
        self.notices = hello.notices
        self.busy = 0
        """Evaluations that hold a seat."""
        self.reserved = False
        """Whether somebody wants all of it."""
        self.answered = 0
        self.lost: str | None = None
        """Why it is not to be used any more."""
        self.handle = handle
        self.served = served
        """Ends when the actor does."""
        self.over = anyio.Event()
        self._ray = ray
        self._tickets = 0

    def lose(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
            self.over.set()

    async def judge(self, problem: Problem, code: str) -> Answer:
        """Raises WorkerLost. Cancelled, it cancels the evaluation on the node."""
        self._tickets += 1
        ticket = self._tickets
        reply = self.handle.judge.remote(ticket, problem, code)
        try:
            answer: Answer = await reply
        except anyio.get_cancelled_exc_class():
            self.handle.drop.remote(ticket)
            raise
        except self._ray.exceptions.RayError as error:
            self.lose(one_line(error))
            raise WorkerLost(self.lost) from error
        if answer.failed:
            self.lose(answer.failed)
            raise WorkerLost(self.lost)
        self.answered += 1
        self.notices = answer.notices or self.notices
        return answer


class Workers:
    """All actors of one pool. jobs: evaluations at a time on each, 0: as many as its CPUs allow. own: a GPU to keep away from."""

    def __init__(self, ray: Any, jobs: int, config: EvaluatorConfig, own: str | None, *, gpu: bool) -> None:
        self.alive: list[Worker] = []
        self.notices: list[str] = []
        """What makes measured times less trustworthy, each line once."""
        self.told: list[str] = []
        """Lines about lost actors and places, on standard error when they happened."""
        self._ray = ray
        self._jobs = jobs
        self._config = config
        self._own = own
        self._gpu = gpu
        self._kept: set[Place] = set()
        """Places that have, or had, their `_keep`."""
        self._starting = 0
        self._inquiries = 0
        """Evaluations whose last actor is lost and which may be at fault."""
        self._open = False
        """Whether `start` is over."""
        self._first: Hello | None = None
        self._refused: list[Refused] = []
        self._changed = anyio.Event()

    @property
    def usable(self) -> list[Worker]:
        return [worker for worker in self.alive if worker.lost is None]

    async def start(self, tasks: anyio.abc.TaskGroup) -> Hello:
        """Actors in every place, as far as possible; new places later. Returns what all of them are like. Raises UsageError."""
        places = await self._places()
        if not places:
            wanted = "GPUs" if self._gpu else "CPUs"
            raise UsageError(
                f"no living node of the Ray cluster has {wanted}: start one with `ray start --num-{wanted.lower()} N`"
            )
        for place in places:
            self._begin(tasks, place)
        while self._starting:
            await self._changed.wait()
        for refused in sorted(self._refused, key=lambda refused: not refused.unusable):
            if refused.unusable or self._first is None:
                raise UsageError(str(refused))
        assert self._first is not None
        for refused in self._refused:
            self._tell(str(refused))
        self._open = True
        tasks.start_soon(self._watch, tasks)
        return self._first

    def hear(self, worker: Worker) -> None:
        """Keep what its pool has to say."""
        for notice in worker.notices:
            if (line := f"{worker.place}: {notice}") not in self.notices:
                self.notices.append(line)

    def _tell(self, line: str) -> None:
        self.told.append(line)
        print(line, file=sys.stderr, flush=True)

    async def outlived(self, worker: Worker) -> bool:
        """Whether a lost actor's node lives on. While this is asked nobody is told that no node is left, because the answer may
        name the problem at fault."""
        self._inquiries += 1
        deadline = anyio.current_time() + NODE_SECONDS
        try:
            while worker.place in await self._places():
                successor = any(other is not worker and other.place == worker.place for other in self.usable)
                if successor or anyio.current_time() >= deadline:
                    return True
                with anyio.move_on_after(LOOK_SECONDS):
                    await self._changed.wait()
            return False
        finally:
            self._inquiries -= 1
            self._notify()

    async def _places(self) -> list[Place]:
        return find_places(await list_nodes(self._ray), gpu=self._gpu)

    async def _watch(self, tasks: anyio.abc.TaskGroup) -> None:
        while True:
            await anyio.sleep(WATCH_SECONDS)
            for place in await self._places():
                if place not in self._kept:
                    self._begin(tasks, place)

    def _begin(self, tasks: anyio.abc.TaskGroup, place: Place) -> None:
        self._kept.add(place)
        self._starting += 1
        tasks.start_soon(self._keep, place)

    async def _keep(self, place: Place) -> None:
        deaths = 0
        try:
            while True:
                async with self._running(place) as worker:
                    self._starting -= 1
                    self.alive.append(worker)
                    self.hear(worker)
                    self._notify()
                    try:
                        await worker.over.wait()
                    finally:
                        self.alive.remove(worker)
                        self._starting += 1
                    self._tell(f"the evaluator on {place} was lost, and its evaluations were handed on: {worker.lost}")
                    self._notify()
                deaths = 0 if worker.answered else deaths + 1
                if deaths >= MOST_DEATHS:
                    raise Refused(f"{place} is given up after {deaths} losses without an answer: {worker.lost}")
                if place not in await self._places():
                    raise Refused(f"{place} has left the cluster")
        except Refused as refused:
            self._refused.append(refused)
            if self._open:
                self._tell(str(refused))
        finally:
            self._starting -= 1
            self._notify()

    @asynccontextmanager
    async def _running(self, place: Place) -> AsyncIterator[Worker]:
        """An actor with an open pool; afterwards there is none. Raises Refused."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = {
            "num_cpus": place.cpus, "num_gpus": int(place.gpu), "max_restarts": 0, "max_task_retries": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(place.node, soft=False),
        }  # fmt: skip
        handle = await anyio.to_thread.run_sync(lambda: self._ray.remote(Actor).options(**options).remote())
        served: Any = None
        try:
            await self._greet(place, handle)
            served = handle.serve.remote("cuda" if self._gpu else "cpu", self._jobs or max(place.lanes, 1), self._config)
            hello = await self._wait_for_pool(place, handle, served)
            self._check(place, hello)
            worker = Worker(self._ray, place, handle, served, hello)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_it_ends, worker)
                yield worker
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                if served is not None:
                    await self._close(handle, served)
                await anyio.to_thread.run_sync(self._ray.kill, handle)

    @contextmanager
    def _opening(self, place: Place, step: str) -> Iterator[None]:
        """A part of the opening of an actor, named by how it fails. Raises Refused."""
        try:
            with anyio.fail_after(START_SECONDS):
                yield
        except TimeoutError:
            raise Refused(f"{place}: an actor {step} within {START_SECONDS:.0f} s") from None
        except self._ray.exceptions.RayError as error:
            raise Refused(f"{place}: an actor could not start: {last_line(error)}") from error

    async def _greet(self, place: Place, handle: Any) -> None:
        """Raises Refused if the actor gets no resources or has another version."""
        wanted = f"{place.cpus} CPUs{' and a GPU' if place.gpu else ''}"
        with self._opening(place, f"found no room (it wants {wanted}, all that the place has)"):
            there, here = await handle.version.remote(), source_version()
        if there != here:
            raise Refused(
                f"{place} has another version of rlkernel, torch, triton or numpy ({there} there, {here} here): install "
                "the same on every node",
                unusable=True,
            )

    async def _wait_for_pool(self, place: Place, handle: Any, served: Any) -> Hello:
        with self._opening(place, "did not open its pool"):
            hello: Hello | None = await handle.hello.remote()
            if hello is None:
                await served  # raises
        assert hello is not None
        return hello

    def _check(self, place: Place, hello: Hello) -> None:
        if self._own in hello.cards:
            raise Refused(
                f"{place} evaluates on the GPU that this process uses itself: start Ray there with `--num-gpus 0`, or hide the "
                "GPU from it with CUDA_VISIBLE_DEVICES",
                unusable=True,
            )
        if self._first is None:
            self._first = hello
        if (hello.device, hello.config) != (self._first.device, self._first.config):
            raise Refused(
                f"{place} has {hello.device}, another place {self._first.device}: times on both do not compare, so use nodes of "
                "one kind",
                unusable=True,
            )

    async def _until_it_ends(self, worker: Worker) -> None:
        try:
            await worker.served
            worker.lose("its pool was closed")
        except self._ray.exceptions.RayError as error:
            worker.lose(last_line(error))

    async def _close(self, handle: Any, served: Any) -> None:
        """Let the pool, which may still be opening, remove its files and processes. Of a dead actor Ray says so at once."""
        with anyio.move_on_after(STOP_SECONDS):
            try:
                await handle.stop.remote()
                await served
            except self._ray.exceptions.RayError:
                return

    @asynccontextmanager
    async def seat(self, *, alone: bool) -> AsyncIterator[Worker]:
        """Room on the actor that has most of it; alone: on one that evaluates nothing else meanwhile. Raises UsageError."""
        worker = await (self._empty() if alone else self._free())
        try:
            yield worker
        finally:
            worker.busy -= 1
            worker.reserved = worker.reserved and not alone
            self._notify()

    async def _free(self) -> Worker:
        while True:
            free = [w for w in self.usable if not w.reserved and w.busy < w.hello.jobs]
            if free:
                worker = max(free, key=lambda w: w.hello.jobs - w.busy)
                worker.busy += 1
                return worker
            await self._change()

    async def _empty(self) -> Worker:
        while True:
            open_to_all = [w for w in self.usable if not w.reserved]
            if not open_to_all:
                await self._change()
                continue
            worker = min(open_to_all, key=lambda w: w.busy)
            worker.reserved = True
            try:
                while worker.busy and worker.lost is None:
                    await self._change()
            except BaseException:
                worker.reserved = False
                self._notify()
                raise
            if worker.lost is None:
                worker.busy = 1
                return worker

    async def _change(self) -> None:
        if not (self.alive or self._starting or self._inquiries):
            # No problem's fault, so no EvaluatorFailed, which would be held against the problem.
            raise UsageError(
                f"no node of the Ray cluster is left to evaluate: {self.told[-1]}: the same command goes on when there is one"
            )
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
