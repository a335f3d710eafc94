"""The evaluator on a Ray cluster: the same verdicts as `pool.py`, from the pools of many nodes.

driver (this process)                                    node A                     node B
evaluate(problem, code)                                  actor: Pool                actor: Pool
  |-- cache? in flight? -> wait for that one               lanes, children,           ...
  |-- a seat on the actor with most room                   sandbox, runner
  |     judge ------------------------------------------>  judge
  |     <------------------------------------- verdict --  |
  |     node A dies: a seat elsewhere, judge again ------------------------------->   judge

An evaluation is a function of the problem and the candidate, so judging again after a loss is safe; `evaluate` returns once, and
the first verdict that arrives is the only one that is kept. A candidate that ends its own processes is a verdict of the node's
pool and loses no actor.

What loses actors again and again must not take the whole cluster down. After the second loss an evaluation runs alone on its
actor, so that a third one is its own doing: that raises EvaluatorFailed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from rlkernel.errors import UsageError
from rlkernel.evaluator import cache as caches
from rlkernel.evaluator.caching import CachingEvaluator
from rlkernel.evaluator.ray_actor import Hello
from rlkernel.evaluator.ray_workers import WorkerLost, Workers, last_line
from rlkernel.evaluator.stages import EvaluatorConfig, EvaluatorFailed
from rlkernel.reference import BrokenReference
from rlkernel.types import Evaluation, Problem

MOST_LOSSES = 3
"""Actors that one evaluation may lose."""
REACH_SECONDS = 10.0
"""For a cluster's head to accept a connection."""


class RayPool(CachingEvaluator):
    """See `open_ray_pool`. Its `device` is "cpu" (modelled time, the same keys as a local pool's) or the name of the GPUs."""

    def __init__(self, workers: Workers, hello: Hello, cache: caches.ResultCache) -> None:
        super().__init__(cache, hello.device, hello.config)
        self.handed_on = 0
        """Evaluations that began again on another actor."""
        self._workers = workers

    @property
    def shares(self) -> bool:
        """Never: see `open_ray_pool`'s own."""
        return False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """As `Pool.turn` where no card is shared: at once."""
        yield

    @property
    def jobs(self) -> int:
        """Evaluations at a time, on the actors of now."""
        return sum(worker.hello.jobs for worker in self._workers.usable)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ray's ids of the nodes that have an actor now, one entry per actor."""
        return tuple(worker.place.node for worker in self._workers.usable)

    @property
    def notices(self) -> tuple[str, ...]:
        """Lines about lost actors and places, and about what makes measured times less trustworthy."""
        seen = (f"{worker.place}: {notice}" for worker in self._workers.alive for notice in worker.notices)
        return (*self._workers.notices, *seen)

    async def judge(self, problem: Problem, code: str) -> Evaluation:
        """Raises BrokenReference, or EvaluatorFailed after `MOST_LOSSES` lost actors or when no node is left."""
        losses: list[str] = []
        while True:
            async with self._workers.seat(alone=len(losses) == MOST_LOSSES - 1) as worker:
                try:
                    answer = await worker.judge(problem, code)
                except WorkerLost as loss:
                    losses.append(f"{worker.place}: {loss}")
                    if len(losses) == MOST_LOSSES:
                        raise EvaluatorFailed(
                            f"{problem.name}: {MOST_LOSSES} evaluators were lost while they judged one candidate, the last time "
                            f"it was alone there: {'; '.join(losses)}"
                        ) from loss
                    self.handed_on += 1
                    continue
            if answer.broken:
                raise BrokenReference(answer.broken)
            assert answer.evaluation is not None
            return answer.evaluation


@asynccontextmanager
async def open_ray_pool(
    *,
    address: str | None = None,
    device: str = "auto",
    jobs: int = 0,
    cache_dir: Path | None = None,
    config: EvaluatorConfig | None = None,
    own: str | None = None,
) -> AsyncIterator[RayPool]:
    """An evaluator on a running Ray cluster. Leaving the context leaves no actor behind, and the cluster as it was.

    address: of the cluster, HOST:PORT; without it RAY_ADDRESS, or the cluster that this machine is in. device: auto (cuda if any
    node has a GPU, else cpu), cpu (modelled time) or cuda. jobs: evaluations at a time on each actor, 0: as many as its CPUs
    allow. cache_dir: of this process. own: UUID of a GPU that this process uses itself and no actor may have. Raises UsageError.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"device {device!r} is unknown on a Ray cluster: use auto, cpu or cuda")
    if jobs < 0:
        raise UsageError(f"jobs is {jobs}: use 0 for as many as each actor's CPUs allow, or a positive number")
    with anyio.CancelScope(shield=True):
        ray, ours = await anyio.to_thread.run_sync(_connect, address)
    try:
        nodes = await anyio.to_thread.run_sync(ray.nodes)
        gpu = device == "cuda" or (device == "auto" and any(node["Alive"] and node["Resources"].get("GPU") for node in nodes))
        workers = Workers(ray, jobs, config or EvaluatorConfig(), own, gpu=gpu)
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            try:
                hello = await workers.start(tasks)
                yield RayPool(workers, hello, caches.ResultCache(cache_dir))
            except Exception as error:  # leaves as it is, not in the group that the task group would make of it
                failure = error
            finally:
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
    finally:
        if ours:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(ray.shutdown)


def _connect(address: str | None) -> tuple[Any, bool]:
    """The module `ray`, connected, and whether it was not before."""
    try:
        import ray
        from ray._private.services import canonicalize_bootstrap_address
    except ImportError:
        raise UsageError("evaluating on a Ray cluster needs Ray, which is not installed: install rlkernel[ray]") from None
    if ray.is_initialized():
        return ray, False
    where = address or os.environ.get("RAY_ADDRESS") or "auto"
    if where.startswith("ray://"):
        raise UsageError(f"{where}: a Ray client cannot be used: run on a node of the cluster and give HOST:PORT of its head")
    try:
        # As ray.init resolves it, which then tries a head that does not answer for a quarter of an hour.
        where = canonicalize_bootstrap_address(where) or where
        host, _, port = where.rpartition(":")
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
        ray.init(address=where, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        told = "none runs on this machine" if where == "auto" else last_line(error)
        raise UsageError(
            f"no Ray cluster answers at {where}: {told}; start one with `ray start --head`, or set RAY_ADDRESS"
        ) from error
    return ray, True
