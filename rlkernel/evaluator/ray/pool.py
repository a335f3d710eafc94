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

What loses actors again and again must not take the whole cluster down, and a problem must not be condemned for nodes that go.
After the second loss an evaluation runs alone on its actor. If that one is lost and its node lives on, it is the evaluation's own
doing: EvaluatorFailed. If the node is gone, too, nothing is known, and it begins again, until `MOST_LOSSES`: UsageError, as when
no node is left, which ends the command and is held against no problem.
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

from rlkernel.config import to_json
from rlkernel.errors import BrokenReference, EvaluatorFailed, UsageError
from rlkernel.evaluator import cache as caches
from rlkernel.evaluator.caching import CachingEvaluator
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.ray.messages import Hello
from rlkernel.evaluator.ray.places import last_line, list_nodes
from rlkernel.evaluator.ray.worker import Opener, WorkerLost
from rlkernel.evaluator.ray.workers import Workers
from rlkernel.interfaces import CardEvaluator
from rlkernel.types import Evaluation, Problem

LOSSES_IN_COMPANY = 2
"""How many actors one evaluation may lose before it runs alone."""
MOST_LOSSES = 5
"""How many actors one evaluation may lose in all."""
REACH_SECONDS = 10.0
"""How long a cluster's head may take to accept a connection."""


class RayPool(CachingEvaluator, CardEvaluator):
    """See `open_ray_pool`. Its `device` is "cpu" (modelled time, the same keys as a local pool's) or the name of the GPUs."""

    def __init__(self, workers: Workers, hello: Hello, cache: caches.ResultCache) -> None:
        super().__init__(cache, hello.device, hello.config)
        self.handed_on = 0
        """The number of evaluations that began again on another actor."""
        self._workers = workers

    @property
    def shares(self) -> bool:
        """Whether our own process and the evaluations use the same card: never, see `own` of `open_ray_pool`."""
        return False

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        """Exclusive use of a shared card, of which there is none: at once."""
        yield

    @property
    def waited_seconds(self) -> tuple[float, float] | None:
        """None: who waits for a card of a node is not known here."""
        return None

    @property
    def jobs(self) -> int:
        """The number of evaluations at a time that the actors of now can make."""
        return sum(worker.hello.jobs for worker in self._workers.usable)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Ray's ids of the nodes that have an actor now, with one entry per actor."""
        return tuple(worker.place.node for worker in self._workers.usable)

    @property
    def notices(self) -> tuple[str, ...]:
        """Lines about what makes measured times less trustworthy."""
        return tuple(self._workers.notices)

    @property
    def told(self) -> tuple[str, ...]:
        """Lines about lost actors and places, which were printed on standard error when they happened."""
        return tuple(self._workers.told)

    def describe(self) -> dict[str, Any]:
        """What judges, with every limit, as JSON for a run's manifest."""
        config = {key: value for key, value in to_json(self.config).items() if key != "class"}
        return {"class": "RayPool", "device": self.device, "jobs": self.jobs, "actors": len(self.nodes), **config}

    async def judge(self, problem: Problem, code: str) -> Evaluation:
        """Judge one candidate on whichever actor has room, and again on another one if that is lost.

        Raises BrokenReference, EvaluatorFailed for what loses actors by itself, UsageError when nodes go or none is left.
        """
        losses: list[str] = []
        while True:
            alone = len(losses) >= LOSSES_IN_COMPANY
            try:
                async with self._workers.seat(alone=alone) as worker:
                    answer = await worker.judge(problem, code)
            except WorkerLost as loss:
                losses.append(f"{worker.place}: {loss}")
                lost = f"{problem.name}: {len(losses)} evaluators were lost while they judged one candidate"
                if alone and await self._workers.outlived(worker):
                    raise EvaluatorFailed(
                        f"{lost}, the last time it was alone there and the node lived on: {'; '.join(losses)}"
                    ) from loss
                if len(losses) == MOST_LOSSES:
                    raise UsageError(
                        f"{lost}, the last time with the node: {'; '.join(losses)}: the same command goes on"
                    ) from loss
                self.handed_on += 1
                continue
            self._workers.hear(worker)
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

    address: the cluster's HOST:PORT; without it RAY_ADDRESS, or the cluster that this machine is in. device: auto (cuda if any
    node has a GPU, else cpu), cpu (modelled time) or cuda. jobs: the number of evaluations at a time on each actor; 0 means as
    many as its CPUs allow. cache_dir: where this process keeps results. own: the UUID of a GPU that this process uses itself
    and no actor may have. Raises UsageError.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"device {device!r} is unknown on a Ray cluster: use auto, cpu or cuda")
    if jobs < 0:
        raise UsageError(f"jobs is {jobs}: use 0 for as many as each actor's CPUs allow, or a positive number")
    with anyio.CancelScope(shield=True):
        ray, ours = await anyio.to_thread.run_sync(_connect, address)
    try:
        nodes = await list_nodes(ray)
        gpu = device == "cuda" or (device == "auto" and any(node["Alive"] and node["Resources"].get("GPU") for node in nodes))
        opener = Opener(ray, jobs, config or EvaluatorConfig(), own, gpu=gpu)
        async with _running(Workers(ray, opener), cache_dir) as pool:
            yield pool
    finally:
        if ours:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(ray.shutdown)


@asynccontextmanager
async def _running(workers: Workers, cache_dir: Path | None) -> AsyncIterator[RayPool]:
    """A pool around `workers`, which are started here and closed at the end.

    What the body raises leaves as it is, not in the group that a task group would make of it. What ends the care for the actors
    leaves so, too, unless the body raised first.
    """
    failure: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            try:
                hello = await workers.start(tasks)
                yield RayPool(workers, hello, caches.ResultCache(cache_dir))
            except Exception as error:  # raised below
                failure = error
            finally:
                tasks.cancel_scope.cancel()
    except ExceptionGroup as group:
        failure = failure or _leaf(group)
    if failure is not None:
        raise failure


def _leaf(error: Exception) -> Exception:
    """Return the first error inside nested groups."""
    return _leaf(error.exceptions[0]) if isinstance(error, ExceptionGroup) else error


def _connect(address: str | None) -> tuple[Any, bool]:
    """Connect to the cluster. Returns the module `ray`, and whether it was not connected before. Raises UsageError."""
    try:
        import ray
    except ImportError:
        raise UsageError("evaluating on a Ray cluster needs Ray, which is not installed: install rlkernel[ray]") from None
    if ray.is_initialized():
        connected = ray.get_runtime_context().gcs_address
        if address not in (None, "auto") and _resolved(address) != connected:
            raise UsageError(
                f"address {address}: this process is connected to the Ray cluster at {connected}: ray.shutdown() first"
            )
        return ray, False
    where = address or os.environ.get("RAY_ADDRESS") or "auto"
    if where.startswith("ray://"):
        raise UsageError(f"{where}: a Ray client cannot be used: run on a node of the cluster and give HOST:PORT of its head")
    try:
        where = _resolved(where)
        host, _, port = where.rpartition(":")
        if host:  # ray.init tries a head that does not answer for a quarter of an hour
            socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
        ray.init(address=where, log_to_driver=False, logging_level="ERROR")
    except (OSError, RuntimeError, ValueError) as error:
        told = "none runs on this machine" if where == "auto" else last_line(error)
        raise UsageError(
            f"no Ray cluster answers at {where}: {told}; start one with `ray start --head`, or set RAY_ADDRESS"
        ) from error
    return ray, True


def _resolved(where: str) -> str:
    """Return HOST:PORT as ray.init resolves `where`, or `where` itself if nothing is known or this version of Ray hides how."""
    try:
        from ray._private.services import canonicalize_bootstrap_address
    except ImportError:
        return where
    return canonicalize_bootstrap_address(where) or where
