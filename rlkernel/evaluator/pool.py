"""The evaluator: a bounded asyncio pool that takes a candidate through tracing, compilation, execution and judgement.

evaluate(problem, code)
  |-- cache? in flight? -> wait for that one
  |-- a lane (one of `jobs`), which owns an oracle: the trusted child that knows the reference
  |     oracle: fit              sizes that can be judged here, where the problem's file names none
  |     oracle: prepare          specifications of the arguments, the reference's trace and cost
  |     tracer child (locked)    source -> Program
  |     compile child            launches -> binaries for the target
  |
  |   without a GPU (cpu_path.py)                    with GPUs (gpu_path.py)
  |     oracle: rounds     seeds, inputs               lease of a GPU: one candidate at a time
  |     runner child       outputs, costs, liveness      runner    tune, judge at full shape, liveness,
  |     oracle: compare    outputs -> matches                      time beside the reference, attribute
  |
  |-- verdict.combine
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from rlkernel.config import to_json
from rlkernel.errors import EvaluatorFailed
from rlkernel.evaluator import cache as caches
from rlkernel.evaluator import remarks
from rlkernel.evaluator.caching import CachingEvaluator
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.at_hand import for_cards, not_idle, own_pids, with_measured_profile
from rlkernel.evaluator.cards.baselines import DRIFT
from rlkernel.evaluator.cards.gpu_runner import GpuRunner, open_runner
from rlkernel.evaluator.cards.watch import Watch
from rlkernel.evaluator.clock import Clock, OnStage
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.cpu_path import CpuPath
from rlkernel.evaluator.devices import DeviceProfile, profile_of
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.gpu_path import GpuPath
from rlkernel.evaluator.judging.noted import Noted
from rlkernel.evaluator.judging.undecided import why_undecided
from rlkernel.evaluator.judging.verdict import failed
from rlkernel.evaluator.messages.native import NativeFound, Way
from rlkernel.evaluator.messages.survey import Survey
from rlkernel.evaluator.native_path import NativePath, native_evaluation
from rlkernel.evaluator.processes.child import Child
from rlkernel.evaluator.processes.fork_server import ForkServer
from rlkernel.evaluator.processes.words import Words
from rlkernel.evaluator.stages import Stages
from rlkernel.interfaces import CardEvaluator
from rlkernel.types import Evaluation, Problem, Status

LANES_PER_CORE = 1.25
"""Lanes per core on the GPU path: a lane that waits for the GPU leaves its core to another."""
WATCH_SECONDS = 5.0
"""Seconds between two looks at a card's clocks and processes: each look takes the driver's locks."""


class Pool(CachingEvaluator, CardEvaluator):
    """A `CardEvaluator` on this machine, see `open_pool`. Its `device` is "cpu" (modelled time), or the names of the GPUs."""

    def __init__(
        self, path: CpuPath | GpuPath, stages: Stages, config: EvaluatorConfig, cache: caches.ResultCache,
        oracles: Sequence[Child], device: str, server: ForkServer, notices: Sequence[str] = (), shared: str | None = None,
        watches: Sequence[Watch] = (), renew: Callable[[Child], Awaitable[Child]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(cache, device, config)
        self.jobs = len(oracles)
        self.server = server
        """The fork server, which forks the children of every lane."""
        self.on_stage: OnStage = nullcontext
        """The context in which each stage of an evaluation takes place, for whoever watches a single one."""
        self._path = path
        self._stages = stages
        self._notices = tuple(notices)
        self._watches = tuple(watches)
        self._shared = next((runner for runner in self.runners if runner.gpu.uuid == shared), None)
        self._idle = list(oracles)
        self._renew = renew
        """Ends an oracle and gives another in its place."""
        self._lanes = anyio.Semaphore(self.jobs)

    @property
    def profile(self) -> DeviceProfile:
        """The GPU that is compiled for."""
        return profile_of(self.config.profile)

    @property
    def runners(self) -> Sequence[GpuRunner]:
        """The runners, one per GPU; empty where time is modelled."""
        return self._path.runners if isinstance(self._path, GpuPath) else ()

    @property
    def notices(self) -> tuple[str, ...]:
        """Lines about what makes measured times less trustworthy.

        They name cards that were not idle at the start, and throttling, other processes and drift since then.
        """
        drifts = self._path.drifts if isinstance(self._path, GpuPath) else 0
        what = "1 reference's time differs" if drifts == 1 else f"{drifts} references' times differ"
        line = f"{what} from the stored one by more than {DRIFT:.0%}: the card's state has changed; both are in baselines.jsonl"
        seen = tuple(notice for watch in self._watches for notice in watch.notices)
        return (*self._notices, *seen, line) if drifts else (*self._notices, *seen)

    @property
    def shares(self) -> bool:
        """Whether our own process and the evaluations use the same card."""
        return self._shared is not None

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        """Exclusive use of the shared card for our own process, see `CardEvaluator.lease`."""
        if self._shared is None:
            yield
        else:
            async with self._shared.lease_as_guest():
                yield

    @property
    def waited_seconds(self) -> tuple[float, float] | None:
        """Seconds that candidates, and that our own process, have waited for a GPU. None without a GPU."""
        if not self.runners:
            return None
        return sum(runner.waited_seconds for runner in self.runners), sum(runner.guests_waited_seconds for runner in self.runners)

    def describe(self) -> dict[str, Any]:
        """What judges, with every limit, as JSON for a run's manifest."""
        config = {key: value for key, value in to_json(self.config).items() if key != "class"}
        return {"class": "Pool", "device": self.device, "jobs": self.jobs, "takes_turns": self.shares, **config}

    def listen(self) -> Words:
        """Keep what candidates print while they are traced from now on, for a person to read. No verdict rests on it."""
        self.server.words = Words()
        return self.server.words

    def places(self) -> dict[str, str]:
        """Keep where the values of wrong outputs differ from now on, by what is wrong with them, for a person to read. Without a
        GPU alone. It stands in no evaluation, because a policy that is told results could learn them."""
        self._stages.places = {}
        return self._stages.places

    async def survey(self, problem: Problem) -> Survey:
        """What is known of a problem's reference before anybody tries it, as soon as a lane is free. It runs locked, in a process
        of its own, and its time is modelled."""
        async with self._lanes:
            return await self._stages.survey(problem)

    def remarks(self, problem: Problem, found: Evaluation, noted: Noted) -> list[str]:
        """What nobody has looked at of a candidate, of which this was `noted` while it was judged, one line each
        (`evaluator.remarks`). No verdict rests on it. Nothing is told with a GPU, nor of a verdict from the cache: nothing was
        noted then."""
        if found.cached:
            return []
        told, known = remarks.untried(noted.configurations), self._stages.known(problem)
        if known is not None and (why := why_undecided(found.detail)) is not None:
            told += remarks.to_decide(problem, why, noted.open, known.variants[1].specs, self.config.limits.run_seconds)
        return told

    async def doubts(self, problem: Problem) -> list[str]:
        """Why a `correct` says little where it is a verdict on this problem, one line each (`evaluator.remarks`). It takes a
        survey."""
        known = self._stages.known(problem)
        large = [] if known is None or self.runners else remarks.too_large(problem.name, known.variants[1], self.profile)
        return large or remarks.degenerate(problem.name, await self.survey(problem))

    async def judge(self, problem: Problem, code: str) -> Evaluation:
        """Judge a candidate now, as soon as a lane is free. Raises BrokenReference or EvaluatorFailed."""
        async with self._lanes:
            oracle, clock = self._idle.pop(), Clock(self.on_stage)
            try:
                found = await self._path.evaluate(oracle, problem, code, clock)
            except Ended as end:
                if end.status is Status.UNTRACEABLE and self.config.untraceable == "native":
                    found = replace(await self._judge_natively(oracle, problem, code, clock), sizes=end.sizes)
                else:
                    found = replace(failed(end.status, end.detail, clock.now), sizes=end.sizes)
            except EvaluatorFailed:  # the oracle may be dead, or in the middle of an answer
                if self._renew is not None:
                    with anyio.CancelScope(shield=True):
                        oracle = await self._renew(oracle)
                raise
            finally:
                self._idle.append(oracle)
        return found

    async def _judge_natively(self, oracle: Child, problem: Problem, code: str, clock: Clock) -> Evaluation:
        """Judge a candidate that cannot be traced by what it does as plain Python."""
        problem = self._stages.as_fitted(problem)
        brief = await self._stages.brief(oracle, problem, modelled=not self.runners)
        with clock.stage("run"):
            found = await self.run_natively(problem, code, Way.JUDGED)
        return native_evaluation(found, brief.measured_floor_us, clock.now, measured=bool(self.runners))

    async def run_natively(self, problem: Problem, code: str, way: Way) -> NativeFound:
        """Run a candidate as plain Python, on the card that fewest wait for, which is its own meanwhile; without a GPU, on the
        CPU. The problem has the sizes at which it was judged before. Raises BrokenReference or EvaluatorFailed."""
        problem = self._stages.as_fitted(problem)
        if not self.runners:
            return await NativePath(self.server, "cpu", self.config).run(problem, code, way)
        runner = min(self.runners, key=lambda runner: runner.waiting)
        async with runner.lease_as_guest():
            return await NativePath(runner.server, "cuda", self.config).run(problem, code, way)


@asynccontextmanager
async def open_pool(
    *,
    device: str = "auto",
    jobs: int = 0,
    cache_dir: Path | None = None,
    config: EvaluatorConfig | None = None,
    shared: str | None = None,
) -> AsyncIterator[Pool]:
    """An evaluator with `jobs` lanes (0 means one per core). Leaving the context leaves no process, file or socket behind.

    device: auto (every GPU that is visible, else cpu), cpu (modelled time), cuda (every GPU), cuda:N or cuda:N,M. shared: the
    UUID of a card that this process uses itself, which then takes `Pool.lease`s there and leaves the runner's half of the memory
    alone. Raises ValueError for a device that this machine cannot serve.
    """
    cards = gpus.select(device)
    if jobs < 0:
        raise ValueError(f"jobs is {jobs}: use 0 for one per core, or a positive number")
    cores = len(os.sched_getaffinity(0))
    jobs = jobs or (round(LANES_PER_CORE * cores) + len(cards) if cards else cores)
    config = config or EvaluatorConfig()
    if cards:
        config = for_cards(config, cards, shared)
    async with AsyncExitStack() as stack:
        notices = await not_idle(cards, shared)
        runners = [await stack.enter_async_context(open_runner(card, config.limits.gpu_memory_bytes)) for card in cards]
        config = await with_measured_profile(config, runners, cache_dir)
        server = await stack.enter_async_context(ForkServer())
        stages = Stages(server, config, (cache_dir or server.scratch) / "binaries")
        path = GpuPath(stages, runners, cache_dir) if cards else CpuPath(stages)
        oracles = [await stack.enter_async_context(server.child("oracle")) for _ in range(jobs)]

        async def renew(oracle: Child) -> Child:
            server.kill(oracle)
            return await stack.enter_async_context(server.child("oracle"))

        place = gpus.models(cards) or "cpu"
        watches = [
            await stack.enter_async_context(
                Watch(runner.gpu, WATCH_SECONDS, partial(own_pids, runner, runner.gpu.uuid == shared))
            )
            for runner in runners
        ]
        yield Pool(path, stages, config, caches.ResultCache(cache_dir), oracles, place, server, notices, shared, watches, renew)
