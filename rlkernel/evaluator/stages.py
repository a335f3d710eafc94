"""What both paths of an evaluation share: questions to children, and what becomes of their deaths, silence and nonsense."""

from __future__ import annotations

import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import anyio

from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator import wire
from rlkernel.evaluator.compile import binaries
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.processes.fork_server import Child, ChildDied, ForkServer
from rlkernel.evaluator.program import schema as programs
from rlkernel.types import Problem, Seconds, Status


class Ended(Exception):
    """The evaluation is over: a verdict before the end."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class Clock:
    """Wall-clock seconds per stage."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.seconds = Seconds()

    @property
    def now(self) -> Seconds:
        return replace(self.seconds, total=time.perf_counter() - self.start)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time inside to `name`, however it ends."""
        since = time.perf_counter()
        try:
            yield
        finally:
            spent = getattr(self.seconds, name) + time.perf_counter() - since
            self.seconds = replace(self.seconds, **{name: spent})


MAY_SAY = {
    "trace": {Status.INVALID, Status.UNTRACEABLE, Status.INCONSISTENT, Status.RUNTIME_ERROR, Status.CRASH},
    "compile": {Status.COMPILE_ERROR, Status.OUT_OF_BOUNDS, Status.CRASH},
    "run": {Status.RUNTIME_ERROR, Status.OUT_OF_BOUNDS, Status.COMPILE_ERROR, Status.UNTRACEABLE, Status.CRASH},
}
"""Failures that a child may report of its candidate; a success is never a child's to report."""
_MAX_BODY = {"trace": 0, "compile": 1 << 28, "run": 1 << 29}
_WHAT = {"trace": "tracing ModelNew", "compile": "compiling", "run": "running the kernels"}


class Stages:
    """Asks children, on behalf of one evaluation after the other."""

    def __init__(self, server: ForkServer, config: EvaluatorConfig, directory: Path) -> None:
        self.config = config
        self._server = server
        self._directory = directory
        """Of kept binaries."""
        self._prepared: dict[str, dict[str, Any]] = {}

    def about(self, problem: Problem) -> dict[str, Any]:
        return {"name": problem.name, "source": problem.source, "profile": self.config.profile, "tf32": self.config.tf32}

    async def ask_oracle(self, oracle: Child, message: bytes) -> tuple[dict[str, Any], bytes]:
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

    async def prepare(self, oracle: Child, problem: Problem) -> dict[str, Any]:
        """Specifications of the arguments, the reference's trace and its cost; once per problem."""
        known = self._prepared.get(problem.source)
        if known is None:
            known, _ = await self.ask_oracle(oracle, wire.pack({"do": "prepare", **self.about(problem)}))
            self._prepared[problem.source] = known
        return known

    async def job(self, kind: str, message: bytes, seconds: int, **arguments: Any) -> tuple[dict[str, Any], bytes]:
        """One forked child, one question. Its death, silence or nonsense becomes the candidate's verdict."""
        try:
            with anyio.fail_after(seconds):
                async with self._server.child(
                    kind, cpu_seconds=seconds, memory_bytes=self.config.limits.memory_bytes, arguments=arguments
                ) as child:
                    header, body = await child.ask(message, max_body=_MAX_BODY[kind])
        except TimeoutError:
            raise Ended(Status.TIMEOUT, f"{_WHAT[kind]} took more than {seconds} s") from None
        except ChildDied as death:
            if death.signal in (signal.SIGXCPU,):
                raise Ended(Status.TIMEOUT, f"{_WHAT[kind]} took more than {seconds} s of CPU time") from None
            raise Ended(Status.CRASH, f"the process that was {_WHAT[kind]} {death.describe()}") from None
        except wire.BadMessage as error:
            raise Ended(Status.CRASH, f"the process that was {_WHAT[kind]} sent {error}") from None
        if "status" in header:
            if str(header["status"]) in MAY_SAY[kind]:
                raise Ended(Status(str(header["status"])), str(header.get("detail", "")))
            raise Ended(Status.CRASH, f"the process that was {_WHAT[kind]} sent a verdict that is not its to give")
        return header, body

    async def trace(self, code: str, variants: list[dict[str, Any]], clock: Clock) -> list[Traced]:
        """One traced candidate per variant."""
        request = {"source": code, "profile": self.config.profile, "variants": variants}
        with clock.stage("trace"):
            header, _ = await self.job("trace", wire.pack(request), self.config.limits.trace_seconds)
        try:
            traces = header["traces"]
            if len(traces) != len(variants):
                raise ValueError("another number of traces")
            return [
                Traced(
                    programs.from_json(trace["program"]),
                    None if trace["other_mode"] is None else programs.from_json(trace["other_mode"]),
                )
                for trace in traces
            ]
        except (programs.MalformedProgram, KeyError, TypeError, ValueError) as error:
            raise Ended(Status.CRASH, f"the trace is not a Program: {error}") from error

    async def compile(
        self, program: programs.Program, specs: dict[str, Any], configs: dict[int, list[int]] | Literal["all"]
    ) -> binaries.Kernels:
        """Binaries of every launch: of the first config that compiles, in the order given (forward step -> configs; as they
        come by default), or of all that work."""
        message = wire.pack({
            "program": programs.to_json(program), "specs": specs, "profile": self.config.profile,
            "configs": configs if configs == "all" else {str(k): v for k, v in configs.items()},
        })  # fmt: skip
        self._directory.mkdir(parents=True, exist_ok=True)
        try:
            with tempfile.TemporaryDirectory(prefix="compile-", dir=self._server.scratch) as scratch:
                seconds = self.config.limits.compile_seconds
                reply, body = await self.job("compile", message, seconds, directory=str(self._directory), scratch=scratch)
            return binaries.collect(program, reply, body, self._directory, PROFILES[self.config.profile].arch)
        except wire.BadMessage as error:
            raise Ended(Status.CRASH, f"the process that was compiling sent {error}") from error


@dataclass(frozen=True, slots=True)
class Traced:
    """A candidate at one size. `other`: in the other of train and eval mode, where it does other work there."""

    program: programs.Program
    other: programs.Program | None


def with_body(header: dict[str, Any], body: bytes) -> bytes:
    whole = wire.Body()
    whole.parts.append(body)
    return wire.pack(header, whole)


def specs_at(variant: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The tensor specifications of a variant's arguments."""
    pairs = (("init_inputs", "init_args"), ("inputs", "inputs"))
    return {part: programs.specs_of(variant[name]) for part, name in pairs}
