"""The evaluator: a bounded asyncio pool that takes a candidate through tracing, compilation, execution and judgement.

evaluate(problem, code)
  |-- cache? in flight? -> wait for that one
  |-- a lane (one of `jobs`), which owns an oracle: the trusted child that knows the reference
  |     oracle: prepare          specifications of the arguments, the reference's cost
  |     tracer child (locked)    source -> Programs at small and full shape
  |     compile child            launches -> binaries for the target
  |     oracle: rounds           fresh seeds, inputs, weights
  |     runner child (locked)    Programs + inputs -> outputs, costs, liveness
  |     oracle: compare          outputs -> matches
  |-- verdict.combine
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.abc

from rlkernel.evaluator import binaries, wire
from rlkernel.evaluator import cache as caches
from rlkernel.evaluator import program as programs
from rlkernel.evaluator.devices import PROFILES, DeviceProfile
from rlkernel.evaluator.fork_server import Child, ChildDied, ForkServer
from rlkernel.evaluator.verdict import Facts, census, combine, failed
from rlkernel.reference import BrokenReference
from rlkernel.types import Evaluation, OpFact, Problem, Seconds, Status

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """What one candidate may take. Seconds are wall clock; CPU seconds are limited to the same number."""

    trace_seconds: int = 5
    compile_seconds: int = 60
    run_seconds: int = 20
    oracle_seconds: int = 120
    memory_bytes: int = 4 * GIB
    """Address space on top of the libraries'."""
    code_bytes: int = 200_000


@dataclass(frozen=True, slots=True)
class EvaluatorConfig:
    """How candidates are judged; part of every cache key."""

    profile: str = "h200"
    """The GPU that is compiled for, and modelled where there is none; see `devices.PROFILES`."""
    tf32: bool = False
    """Whether a float32 task may use tf32 matrix units."""
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.profile not in PROFILES:
            raise ValueError(f"unknown device profile {self.profile!r}: use one of {', '.join(PROFILES)}")


class EvaluatorFailed(RuntimeError):
    """A trusted process of the evaluator ended: our failure, or the reference's, never a candidate's."""


class _Ended(Exception):
    """The evaluation is over: a verdict before the end."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class _Clock:
    """Wall-clock seconds per stage."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.seconds = Seconds()

    @property
    def now(self) -> Seconds:
        return replace(self.seconds, total=time.perf_counter() - self.start)

    def add(self, stage: str, since: float) -> None:
        self.seconds = replace(self.seconds, **{stage: getattr(self.seconds, stage) + time.perf_counter() - since})


class Pool:
    """See `open_pool`. Implements `rlkernel.interfaces.Evaluator`."""

    def __init__(self, server: ForkServer, config: EvaluatorConfig, cache: caches.ResultCache, binaries: Path, jobs: int) -> None:
        self.config = config
        self.jobs = jobs
        self.cache = cache
        self.hits = 0
        self.misses = 0
        self._server = server
        self._binaries = binaries
        self._idle: list[Child] = []
        self._lanes = anyio.Semaphore(jobs)
        self._flying: dict[str, anyio.Event] = {}

    @property
    def profile(self) -> DeviceProfile:
        return PROFILES[self.config.profile]

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        """Judge one candidate. Raises BrokenReference if the problem itself is unusable; a bad candidate is a value."""
        if code is None or not code.strip():
            return Evaluation(Status.NO_CODE, "no fenced python block with a ModelNew was found")
        if len(code.encode()) > self.config.limits.code_bytes:
            return Evaluation(Status.INVALID, f"the code is longer than {self.config.limits.code_bytes} bytes")
        name = caches.key(problem, code, "cpu", repr(self.config))
        while True:
            known = self.cache.get(name)
            if known is not None:
                self.hits += 1
                return known
            if name not in self._flying:
                break
            await self._flying[name].wait()
        self._flying[name] = done = anyio.Event()
        try:
            result = await self._in_lane(problem, code)
            self.cache.put(name, result)
            self.misses += 1
            return result
        finally:
            del self._flying[name]
            done.set()

    async def _in_lane(self, problem: Problem, code: str) -> Evaluation:
        async with self._lanes:
            oracle = self._idle.pop()
            try:
                return await self._evaluate(oracle, problem, code)
            finally:
                self._idle.append(oracle)

    async def _evaluate(self, oracle: Child, problem: Problem, code: str) -> Evaluation:
        clock = _Clock()
        try:
            return await self._stages(oracle, problem, code, clock)
        except _Ended as end:
            return failed(end.status, end.detail, clock.now)

    async def _ask_oracle(self, oracle: Child, message: bytes) -> tuple[dict[str, Any], bytes]:
        """Trusted: its death or silence is our failure and raises."""
        seconds = self.config.limits.oracle_seconds
        with anyio.CancelScope(shield=True):  # half an exchange would leave its answer to the next candidate
            try:
                with anyio.fail_after(seconds):
                    header, body = await oracle.ask(message)
            except ChildDied as death:
                raise EvaluatorFailed(f"the process that runs the reference {death.describe()}") from death
            except TimeoutError:
                raise EvaluatorFailed(f"the process that runs the reference took more than {seconds} s") from None
        if "status" in header:
            raise EvaluatorFailed(f"the process that runs the reference: {header['detail']}")
        if "broken" in header:
            raise BrokenReference(header["broken"])
        return header, body

    async def _job(self, kind: str, message: bytes, seconds: int, **arguments: Any) -> tuple[dict[str, Any], bytes]:
        """One forked child, one question. Its death, silence or nonsense becomes the candidate's verdict."""
        try:
            with anyio.fail_after(seconds):
                async with self._server.child(
                    kind, cpu_seconds=seconds, memory_bytes=self.config.limits.memory_bytes, arguments=arguments
                ) as child:
                    header, body = await child.ask(message, max_body=_MAX_BODY[kind])
        except TimeoutError:
            raise _Ended(Status.TIMEOUT, f"{_WHAT[kind]} took more than {seconds} s") from None
        except ChildDied as death:
            if death.signal in (signal.SIGXCPU,):
                raise _Ended(Status.TIMEOUT, f"{_WHAT[kind]} took more than {seconds} s of CPU time") from None
            raise _Ended(
                Status.CRASH, f"the process that was {_WHAT[kind]} was {death.describe()}".replace("was exited", "exited")
            ) from None
        except wire.BadMessage as error:
            raise _Ended(Status.CRASH, f"the process that was {_WHAT[kind]} sent {error}") from None
        if "status" in header:
            if str(header["status"]) in _MAY_SAY[kind]:
                raise _Ended(Status(str(header["status"])), str(header.get("detail", "")))
            raise _Ended(Status.CRASH, f"the process that was {_WHAT[kind]} sent a verdict that is not its to give")
        return header, body

    async def _stages(self, oracle: Child, problem: Problem, code: str, clock: _Clock) -> Evaluation:
        limits, profile = self.config.limits, self.config.profile
        about = {"name": problem.name, "source": problem.source, "profile": profile}
        prepared, _ = await self._ask_oracle(oracle, wire.pack({"do": "prepare", **about}))

        since = time.perf_counter()
        request = {"source": code, "profile": profile, "variants": prepared["variants"]}
        try:
            traced, _ = await self._job("trace", wire.pack(request), limits.trace_seconds)
        finally:
            clock.add("trace", since)
        small, other, full = _programs(traced)
        specs = {
            part: programs.specs_of(prepared["variants"][1][name])
            for part, name in (("init_inputs", "init_args"), ("inputs", "inputs"))
        }

        kernels: dict[int, dict[str, Any]] = {}
        if full.launches:
            kernels = _as_facts(await self._compile(full, specs, {}, clock))

        since = time.perf_counter()
        try:
            rounds, body = await self._ask_oracle(
                oracle, wire.pack({"do": "rounds", "other": other is not None, "tf32": self.config.tf32, **about})
            )
            header = {
                "program": programs.to_json(small), "other": None if other is None else programs.to_json(other),
                "full": programs.to_json(full), "full_specs": specs, "profile": profile, "rounds": rounds["rounds"],
            }  # fmt: skip
            ran, outputs = await self._job("run", _with_body(header, body), limits.run_seconds)
            about_rounds = {"do": "compare", "rounds": ran.get("rounds")}
            compared, _ = await self._ask_oracle(oracle, _with_body(about_rounds, outputs))
        finally:
            clock.add("run", since)
        if "malformed" in compared:
            raise _Ended(Status.CRASH, f"the runner's answer is malformed: {compared['malformed']}")
        choices = {int(k): v for k, v in ran["choices"].items() if v != 0}
        if choices:
            kernels |= _as_facts(await self._compile(full, specs, choices, clock))
        facts = Facts(
            program=full, same_work=census(small) == census(full), kernels=kernels, rows=ran["rows"],
            live=_by_source(small, full, {int(k): bool(v) for k, v in ran["live"].items()}),
            unwritten=bool(ran["unwritten"]), matches=bool(compared["matches"]),
            other_mode_only=bool(compared["other"]) and other is not None, detail=str(compared["detail"]),
            error=float(compared["error"]), reference_us=float(prepared["reference_us"]), floor_us=float(prepared["floor_us"]),
            reference_ops=tuple(OpFact(**op) for op in prepared["reference_ops"]),
        )  # fmt: skip
        return combine(facts, clock.now)

    async def _compile(
        self, program: programs.Program, specs: dict[str, Any], configs: dict[int, int] | Literal["all"], clock: _Clock
    ) -> binaries.Kernels:
        """Binaries of every launch, of one config each (forward step -> config, 0 by default) or of all that work."""
        since = time.perf_counter()
        message = wire.pack({
            "program": programs.to_json(program), "specs": specs, "profile": self.config.profile,
            "configs": configs if configs == "all" else {str(k): v for k, v in configs.items()},
        })  # fmt: skip
        try:
            self._binaries.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix="compile-", dir=self._server.scratch) as scratch:
                reply, body = await self._job(
                    "compile", message, self.config.limits.compile_seconds, directory=str(self._binaries), scratch=scratch
                )
            return binaries.collect(program, reply, body, self._binaries, self.profile.arch)
        except wire.BadMessage as error:
            raise _Ended(Status.CRASH, f"the process that was compiling sent {error}") from error
        finally:
            clock.add("compile", since)


def _as_facts(kernels: binaries.Kernels) -> dict[int, dict[str, Any]]:
    """Forward step -> what its one binary is like."""
    return {int(step): asdict(c) for step, found in kernels.facts.items() if step.isdecimal() for c in found.values()}


_MAY_SAY = {
    "trace": {Status.INVALID, Status.UNTRACEABLE, Status.INCONSISTENT, Status.RUNTIME_ERROR, Status.CRASH},
    "compile": {Status.COMPILE_ERROR, Status.CRASH},
    "run": {Status.RUNTIME_ERROR, Status.OUT_OF_BOUNDS, Status.COMPILE_ERROR, Status.CRASH},
}
"""Failures that a child may report of its candidate; a success is never a child's to report."""
_MAX_BODY = {"trace": 0, "compile": 1 << 27, "run": 1 << 29}
_WHAT = {"trace": "tracing ModelNew", "compile": "compiling", "run": "running the kernels"}


def _by_source(small: programs.Program, full: programs.Program, live: dict[int, bool]) -> dict[int, bool]:
    """Liveness of the functions at full shape, found at the small one: the same text, whatever the order of the launches."""
    known = {small.functions[index].source: alive for index, alive in live.items()}
    return {index: known.get(function.source, False) for index, function in enumerate(full.functions)}


def _with_body(header: dict[str, Any], body: bytes) -> bytes:
    whole = wire.Body()
    whole.parts.append(body)
    return wire.pack(header, whole)


def _programs(traced: dict[str, Any]) -> tuple[programs.Program, programs.Program | None, programs.Program]:
    """(small, small in the other mode, full) from the tracer's message, validated."""
    try:
        small, full = traced["traces"]
        other = small["other_mode"]
        return (
            programs.from_json(small["program"]),
            None if other is None else programs.from_json(other),
            programs.from_json(full["program"]),
        )
    except (programs.MalformedProgram, KeyError, TypeError, ValueError) as error:
        raise _Ended(Status.CRASH, f"the trace is not a Program: {error}") from error


@asynccontextmanager
async def open_pool(
    *, device: str = "auto", jobs: int = 0, cache_dir: Path | None = None, config: EvaluatorConfig | None = None
) -> AsyncIterator[Pool]:
    """An evaluator with `jobs` lanes (0: one per core). Leaving the context leaves no process, file or socket behind.

    Raises ValueError for a device that this machine cannot serve.
    """
    if device not in ("auto", "cpu"):
        raise ValueError(f"device {device!r} is not available: use auto or cpu (modelled time)")
    if jobs < 0:
        raise ValueError(f"jobs is {jobs}: use 0 for one per core, or a positive number")
    jobs = jobs or len(os.sched_getaffinity(0))
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ForkServer())
        binaries = (cache_dir or server.scratch) / "binaries"
        pool = Pool(server, config or EvaluatorConfig(), caches.ResultCache(cache_dir), binaries, jobs)
        for _ in range(jobs):
            pool._idle.append(await stack.enter_async_context(server.child("oracle")))
        yield pool
