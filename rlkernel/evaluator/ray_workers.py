"""The actors of a Ray cluster as the driver sees them: where they may live, who has room, and what becomes of their deaths.

    watch    every few seconds: a place that is new gets its own `_keep`
    _keep    start an actor in this place, wait until it is lost, start the next one, until the place is gone or given up
    seat     what an evaluation holds: room on one actor, or all of it

A place is a GPU of a node or, in a cluster without GPUs, a node. Actors never move: a node that dies takes its places along, and
one that joins brings its own. Ray restarts nothing by itself, because only here it is known which evaluations were lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread

from rlkernel.errors import UsageError, one_line
from rlkernel.evaluator.cache import evaluator_version
from rlkernel.evaluator.pool import LANES_PER_CORE
from rlkernel.evaluator.ray_actor import Actor, Answer, Hello
from rlkernel.evaluator.stages import EvaluatorConfig, EvaluatorFailed
from rlkernel.types import Problem

START_SECONDS = 180.0
"""For an actor to get its resources and to open its pool."""
STOP_SECONDS = 20.0
"""For a pool to close; then its actor is killed."""
WATCH_SECONDS = 5.0
"""Between two looks at the nodes."""
MOST_DEATHS = 3
"""Of actors in one place, one after the other, none of which gave an answer: then the place is given up."""


@dataclass(frozen=True, slots=True)
class Place:
    """Room for one actor. node: Ray's id; index: 0, 1, ... on a node with several GPUs."""

    node: str
    address: str
    index: int
    cpus: int
    gpu: bool

    def __str__(self) -> str:
        return f"{self.address} (node {self.node[:8]}{f', GPU actor {self.index}' if self.gpu else ''})"

    @property
    def lanes(self) -> int:
        """Evaluations at a time, as `open_pool` would have it."""
        return round(LANES_PER_CORE * self.cpus) + 1 if self.gpu else self.cpus


def find_places(nodes: Sequence[Mapping[str, Any]], *, gpu: bool) -> list[Place]:
    """Of the living `nodes` (as `ray.nodes()` lists them): one per GPU, or one per node with CPUs."""
    found: list[Place] = []
    for node in nodes:
        if not node["Alive"]:
            continue
        cpus, count = int(node["Resources"].get("CPU", 0)), int(node["Resources"].get("GPU", 0))
        if gpu:
            found += [Place(node["NodeID"], node["NodeManagerAddress"], i, cpus // count, True) for i in range(count)]
        elif cpus:
            found.append(Place(node["NodeID"], node["NodeManagerAddress"], 0, cpus, False))
    return found


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
        self._ray = ray
        self._jobs = jobs
        self._config = config
        self._own = own
        self._gpu = gpu
        self._kept: set[Place] = set()
        """Places that have, or had, their `_keep`."""
        self._starting = 0
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
        tasks.start_soon(self._watch, tasks)
        return self._first

    async def _places(self) -> list[Place]:
        return find_places(await anyio.to_thread.run_sync(self._ray.nodes), gpu=self._gpu)

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
                    self._notify()
                    try:
                        await worker.over.wait()
                    finally:
                        self.alive.remove(worker)
                        self._starting += 1
                self.notices.append(f"the evaluator on {place} was lost, and its evaluations were handed on: {worker.lost}")
                self._notify()
                deaths = 0 if worker.answered else deaths + 1
                if deaths >= MOST_DEATHS:
                    raise Refused(f"{place} is given up after {deaths} losses without an answer: {worker.lost}")
                if place not in await self._places():
                    raise Refused(f"{place} has left the cluster")
        except Refused as refused:
            self._refused.append(refused)
            self.notices.append(str(refused))
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
        worker: Worker | None = None
        try:
            worker = await self._greet(place, handle)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_it_ends, worker)
                yield worker
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                if worker is not None and worker.lost is None:
                    await self._close(worker)
                await anyio.to_thread.run_sync(self._ray.kill, handle)

    async def _greet(self, place: Place, handle: Any) -> Worker:
        step = f"found no room (it wants {place.cpus} CPUs{' and a GPU' if place.gpu else ''}, all that the place has)"
        try:
            with anyio.fail_after(START_SECONDS):
                there, here = await handle.version.remote(), evaluator_version()
                if there != here:
                    raise Refused(
                        f"{place} has another version of rlkernel, torch, triton or numpy ({there} there, {here} here): install "
                        "the same on every node",
                        unusable=True,
                    )
                step = "did not open its pool"
                jobs = self._jobs or max(place.lanes, 1)
                served = handle.serve.remote("cuda" if self._gpu else "cpu", jobs, self._config)
                hello: Hello | None = await handle.hello.remote()
                if hello is None:
                    await served  # raises
        except TimeoutError:
            raise Refused(f"{place}: an actor {step} within {START_SECONDS:.0f} s") from None
        except self._ray.exceptions.RayError as error:
            raise Refused(f"{place}: an actor could not start: {last_line(error)}") from error
        assert hello is not None
        self._check(place, hello)
        return Worker(self._ray, place, handle, served, hello)

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

    async def _close(self, worker: Worker) -> None:
        """Let the pool remove its files and processes. An actor that dies of it is as good as closed."""
        with anyio.move_on_after(STOP_SECONDS):
            try:
                await worker.handle.stop.remote()
                await worker.served
            except self._ray.exceptions.RayError as error:
                worker.lose(one_line(error))

    @asynccontextmanager
    async def seat(self, *, alone: bool) -> AsyncIterator[Worker]:
        """Room on the actor that has most of it; alone: on one that evaluates nothing else meanwhile. Raises EvaluatorFailed."""
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
        if not self.alive and not self._starting:
            raise EvaluatorFailed(f"no node of the Ray cluster is left to evaluate: {self.notices[-1]}")
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


def last_line(error: BaseException) -> str:
    """Ray's texts end with the line that counts: the error of the node, without its traceback."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, BaseException):
        return one_line(cause)
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:200] if lines else ''}"
