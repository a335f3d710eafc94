"""A cluster in words: nodes, actors that answer by a script, and pools of them. No Ray and no process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import anyio

from rlkernel.evaluator.cache import ResultCache
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.ray import pool as ray_pool
from rlkernel.evaluator.ray.messages import Answer, Hello
from rlkernel.evaluator.ray.places import Place, find_places
from rlkernel.evaluator.ray.pool import RayPool
from rlkernel.evaluator.ray.worker import Opener, Refused, Worker, WorkerLost
from rlkernel.evaluator.ray.workers import Workers
from rlkernel.types import Evaluation, Problem, Status

CONFIG = EvaluatorConfig()


class Nodes:
    """A cluster in words: the module `ray` as far as it is asked about nodes."""

    exceptions = SimpleNamespace(RayError=KeyError)

    def __init__(self, **cpus: int) -> None:
        self.cpus = cpus

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {"NodeID": name, "NodeManagerAddress": name, "Alive": True, "Resources": {"CPU": float(count)}}
            for name, count in self.cpus.items()
        ]


class Scripted(Worker):
    """An actor that answers when it may, and dies of some candidates, alone or (`fatal`) with its node."""

    def __init__(
        self, place: Place, judged: list[tuple[str, int]], nodes: Nodes, deadly: Sequence[str] = (), fatal: Sequence[str] = ()
    ) -> None:
        super().__init__(None, place, None, None, Hello("cpu", (), place.cpus, CONFIG, ()))
        self.deadly = deadly
        self.fatal = fatal
        self.nodes = nodes
        self.judged = judged
        """By all actors, in order: candidate and how many others were there."""

    async def judge(self, problem: Problem, code: str) -> Answer:
        self.judged.append((code, self.busy - 1))
        await anyio.lowlevel.checkpoint()
        if code in self.fatal:
            self.nodes.cpus.pop(self.place.node, None)
        if code in (*self.deadly, *self.fatal):
            self.lose(f"{code} killed it")
        if self.lost is not None:
            raise WorkerLost(self.lost)
        if code == "broken":
            return Answer(broken="mine/broken: no Model")
        self.answered += 1
        return Answer(Evaluation(Status.CORRECT, code, speedup=1.0, timing="modelled"))


class ScriptedOpener(Opener):
    """Opens scripted actors on the nodes that are there."""

    def __init__(self, nodes: Nodes, deadly: Sequence[str], fatal: Sequence[str]) -> None:
        super().__init__(nodes, 0, CONFIG, None, gpu=False)
        self.first = Hello("cpu", (), 1, CONFIG, ())
        self.script = (nodes, deadly, fatal)
        self.judged: list[tuple[str, int]] = []
        self.started: list[str] = []

    def worker(self, place: Place) -> Scripted:
        return Scripted(place, self.judged, *self.script)

    @asynccontextmanager
    async def open(self, place: Place) -> AsyncIterator[Worker]:
        if place.node not in self.script[0].cpus:
            raise Refused(f"{place}: an actor could not start")
        self.started.append(place.node)
        yield self.worker(place)


class Crew(Workers):
    """Workers whose actors are scripted: `judged` and `started` say what has become of them."""

    def __init__(
        self, nodes: Nodes, deadly: Sequence[str] = (), fatal: Sequence[str] = (), opener: type[ScriptedOpener] = ScriptedOpener
    ) -> None:
        self.nodes = nodes
        self.opener = opener(nodes, deadly, fatal)
        super().__init__(nodes, self.opener)

    @property
    def judged(self) -> list[tuple[str, int]]:
        return self.opener.judged

    @property
    def started(self) -> list[str]:
        return self.opener.started


@asynccontextmanager
async def crew_pool(crew: Crew) -> AsyncIterator[RayPool]:
    async with ray_pool._running(crew, None) as pool:
        yield pool


def scripted_pool(jobs: int, deadly: Sequence[str] = ()) -> tuple[RayPool, Crew]:
    """A pool of one actor, for which nobody cares."""
    crew = Crew(Nodes(a=jobs), deadly)
    crew.alive.append(crew.opener.worker(find_places(crew.nodes.nodes(), gpu=False)[0]))
    return RayPool(crew, crew.alive[0].hello, ResultCache(None)), crew
