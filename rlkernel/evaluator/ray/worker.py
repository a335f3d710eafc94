"""One actor of a Ray cluster as the driver sees it: opened in its place, asked for verdicts, closed.

Opener.open    an actor with its resources -> the same version as here -> an open pool -> fit for this cluster -> Worker
Worker.judge   one evaluation on the node, until it answers or the actor is lost
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import anyio.to_thread

from rlkernel.errors import one_line
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.ray.actor import Actor
from rlkernel.evaluator.ray.messages import Answer, Hello
from rlkernel.evaluator.ray.places import Place, last_line
from rlkernel.evaluator.version import source_version
from rlkernel.types import Problem

START_SECONDS = 180.0
"""How long an actor may take to get its resources, and how long again to open its pool."""
STOP_SECONDS = 20.0
"""How long a pool may take to close before its actor is killed."""


class WorkerLost(Exception):
    """The actor, or its node, has ended or cannot go on. The message is one line."""


class Refused(Exception):
    """No actor of this place can be used. The message is one line; `unusable` says that the cluster must be changed."""

    def __init__(self, line: str, *, unusable: bool = False) -> None:
        super().__init__(line)
        self.unusable = unusable


class Worker:
    """One actor with an open pool. `served` is the reference to its call `serve`, which ends when the actor does."""

    def __init__(self, ray: Any, place: Place, handle: Any, served: Any, hello: Hello) -> None:
        self.place = place
        self.hello = hello
        self.notices = hello.notices
        self.busy = 0
        """The number of evaluations that hold a seat."""
        self.reserved = False
        """Whether somebody wants all of the actor."""
        self.answered = 0
        self.lost: str | None = None
        """The reason why the actor is not to be used any more."""
        self.handle = handle
        self.served = served
        self.over = anyio.Event()
        self._ray = ray
        self._tickets = 0

    def lose(self, why: str) -> None:
        """Give the actor up; the first reason stays."""
        if self.lost is None:
            self.lost = why
            self.over.set()

    async def judge(self, problem: Problem, code: str) -> Answer:
        """Judge one candidate on the node. A cancelled call cancels the evaluation there. Raises WorkerLost."""
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


class Opener:
    """Opens actors that are all alike, on GPUs or on CPUs.

    jobs: the number of evaluations at a time on each actor; 0 means as many as its CPUs allow. own: the UUID of a GPU that this
    process uses itself.
    """

    def __init__(self, ray: Any, jobs: int, config: EvaluatorConfig, own: str | None, *, gpu: bool) -> None:
        self.gpu = gpu
        self.first: Hello | None = None
        """What the first actor said; every later one must have the same device and configuration."""
        self._ray = ray
        self._jobs = jobs
        self._config = config
        self._own = own

    @asynccontextmanager
    async def open(self, place: Place) -> AsyncIterator[Worker]:
        """An actor with an open pool in `place`; when the context is left there is none. Raises Refused."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = {
            "num_cpus": place.cpus, "num_gpus": int(place.gpu), "max_restarts": 0, "max_task_retries": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(place.node, soft=False),
        }  # fmt: skip
        handle = await anyio.to_thread.run_sync(lambda: self._ray.remote(Actor).options(**options).remote())
        served: Any = None
        try:
            await self._greet(place, handle)
            served = handle.serve.remote("cuda" if self.gpu else "cpu", self._jobs or max(place.lanes, 1), self._config)
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
    def _step(self, place: Place, failure: str) -> Iterator[None]:
        """One step of the opening, named by how it fails when it takes too long. Raises Refused."""
        try:
            with anyio.fail_after(START_SECONDS):
                yield
        except TimeoutError:
            raise Refused(f"{place}: an actor {failure} within {START_SECONDS:.0f} s") from None
        except self._ray.exceptions.RayError as error:
            raise Refused(f"{place}: an actor could not start: {last_line(error)}") from error

    async def _greet(self, place: Place, handle: Any) -> None:
        """Wait until the actor runs, and compare its version with ours. Raises Refused."""
        wanted = f"{place.cpus} CPUs{' and a GPU' if place.gpu else ''}"
        with self._step(place, f"found no room (it wants {wanted}, all that the place has)"):
            there, here = await handle.version.remote(), source_version()
        if there != here:
            raise Refused(
                f"{place} has another version of rlkernel, torch, triton or numpy ({there} there, {here} here): install "
                "the same on every node",
                unusable=True,
            )

    async def _wait_for_pool(self, place: Place, handle: Any, served: Any) -> Hello:
        """Return what the actor says about its pool once that is open. Raises Refused."""
        with self._step(place, "did not open its pool"):
            hello: Hello | None = await handle.hello.remote()
            if hello is None:
                await served  # raises
        assert hello is not None
        return hello

    def _check(self, place: Place, hello: Hello) -> None:
        """Refuse a pool on our own GPU, and one whose times do not compare with the first one's."""
        if self._own in hello.cards:
            raise Refused(
                f"{place} evaluates on the GPU that this process uses itself: start Ray there with `--num-gpus 0`, or hide the "
                "GPU from it with CUDA_VISIBLE_DEVICES",
                unusable=True,
            )
        if self.first is None:
            self.first = hello
        if (hello.device, hello.config) != (self.first.device, self.first.config):
            raise Refused(
                f"{place} has {hello.device}, another place {self.first.device}: times on both do not compare, so use nodes of "
                "one kind",
                unusable=True,
            )

    async def _until_it_ends(self, worker: Worker) -> None:
        """Give the worker up when its actor ends."""
        try:
            await worker.served
            worker.lose("its pool was closed")
        except self._ray.exceptions.RayError as error:
            worker.lose(last_line(error))

    async def _close(self, handle: Any, served: Any) -> None:
        """Let the pool, which may still be opening, remove its files and processes. For a dead actor Ray raises at once."""
        with anyio.move_on_after(STOP_SECONDS):
            try:
                await handle.stop.remote()
                await served
            except self._ray.exceptions.RayError:
                return
