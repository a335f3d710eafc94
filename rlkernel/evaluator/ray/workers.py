"""All actors of a Ray cluster as the driver sees them: where they may live, who has room, and what becomes of their deaths.

    _watch   every few seconds: a place that is new gets its own `_keep`
    _keep    open an actor in this place, wait until it is lost, open the next one, until the place is gone or given up
    seat     what an evaluation holds: room on one actor, or all of it

A place is a GPU of a node or, in a cluster without GPUs, a node. Actors never move: a node that dies takes its places along, and
one that joins brings its own. Ray restarts nothing by itself, because only here it is known which evaluations were lost.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc

from rlkernel.errors import UsageError
from rlkernel.evaluator.ray.messages import Hello
from rlkernel.evaluator.ray.places import Place, find_places, list_nodes
from rlkernel.evaluator.ray.worker import Opener, Refused, Worker

WATCH_SECONDS = 5.0
"""The pause between two looks at the cluster's nodes."""
MOST_DEATHS = 3
"""How many actors of one place may be lost in a row, none of which gave an answer, before the place is given up."""
NODE_SECONDS = 30.0
"""How long Ray may take to notice that a node has died."""
LOOK_SECONDS = 1.0
"""The pause between two looks at a node that may have died."""


class Workers:
    """All actors of one pool, which `opener` opens."""

    def __init__(self, ray: Any, opener: Opener) -> None:
        self.alive: list[Worker] = []
        self.notices: list[str] = []
        """Lines about what makes measured times less trustworthy, each of them once."""
        self.told: list[str] = []
        """Lines about lost actors and places, which were printed on standard error when they happened."""
        self._ray = ray
        self._opener = opener
        self._kept: set[Place] = set()
        """The places that have, or had, their `_keep`."""
        self._starting = 0
        self._inquiries = 0
        """The number of evaluations whose last actor is lost and which may be at fault."""
        self._started = False
        """Whether `start` is over."""
        self._refused: list[Refused] = []
        self._changed = anyio.Event()

    @property
    def usable(self) -> list[Worker]:
        """The actors that are not lost."""
        return [worker for worker in self.alive if worker.lost is None]

    async def start(self, tasks: anyio.abc.TaskGroup) -> Hello:
        """Open actors in every place, as far as possible, and in new places later. Returns what all of them are like.

        Raises UsageError.
        """
        places = await self._places()
        if not places:
            wanted = "GPUs" if self._opener.gpu else "CPUs"
            raise UsageError(
                f"no living node of the Ray cluster has {wanted}: start one with `ray start --num-{wanted.lower()} N`"
            )
        for place in places:
            self._begin(tasks, place)
        while self._starting:
            await self._changed.wait()
        for refused in sorted(self._refused, key=lambda refused: not refused.unusable):
            if refused.unusable or self._opener.first is None:
                raise UsageError(str(refused))
        assert self._opener.first is not None
        for refused in self._refused:
            self._tell(str(refused))
        self._started = True
        tasks.start_soon(self._watch, tasks)
        return self._opener.first

    def hear(self, worker: Worker) -> None:
        """Keep what the worker's pool has to say."""
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
        return find_places(await list_nodes(self._ray), gpu=self._opener.gpu)

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
        """Keep an actor alive in `place`, until the place is gone or given up."""
        deaths = 0
        try:
            while True:
                async with self._opener.open(place) as worker:
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
            if self._started:
                self._tell(str(refused))
        finally:
            self._starting -= 1
            self._notify()

    @asynccontextmanager
    async def seat(self, *, alone: bool) -> AsyncIterator[Worker]:
        """Room on the actor that has most of it, or with `alone` all the room of one. Raises UsageError."""
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
        """Wait until something about the actors has changed. Raises UsageError if there is nothing left that could."""
        if not (self.alive or self._starting or self._inquiries):
            # No problem's fault, so no EvaluatorFailed, which would be held against the problem.
            raise UsageError(
                f"no node of the Ray cluster is left to evaluate: {self.told[-1]}: the same command goes on when there is one"
            )
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
