"""The pool's end of native runs: a candidate as plain Python, in a process that a referee holds, on the CPU or on a GPU."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator import wire
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.judging.verdict import printable
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.endings import Broken, Failed
from rlkernel.evaluator.messages.native import NativeEnd, NativeFound, NativeRequest, Way
from rlkernel.evaluator.processes.child import ChildDied
from rlkernel.evaluator.processes.fork_server import ForkServer
from rlkernel.types import Evaluation, Problem, Seconds, Status

SLACK = 3.0
"""The referee's own work takes at most this many times the candidate's seconds, and then `oracle_seconds` more."""


UNRESOLVED = 64 << 30
"""The bytes of memory that a run on a GPU may take where no pool has put the card's number into the limits."""


@dataclass(frozen=True, slots=True)
class NativePath:
    """Runs candidates natively, each in processes of its own that `server` forks. `device`: "cpu", or "cuda" where the server was
    started for one GPU."""

    server: ForkServer
    device: str
    config: EvaluatorConfig
    alone: str = ""
    """A file whose lock a run holds while it times; empty where the whole device is the caller's."""

    async def run(self, problem: Problem, code: str, way: Way, *, timed: bool = True) -> NativeFound:
        """Run one candidate, and time it unless `timed` is False. Raises BrokenReference or EvaluatorFailed."""
        limits = self.config.limits
        with tempfile.TemporaryDirectory(prefix="native-", dir=self.server.scratch, ignore_cleanup_errors=True) as scratch:
            request = NativeRequest(
                problem.name, problem.source, code, way, self.device, self.device == "cpu", self.config.precision, scratch,
                self.alone, limits.native_seconds,
                limits.memory_bytes if self.device == "cpu" else limits.gpu_memory_bytes or UNRESOLVED,
                timed,
            )  # fmt: skip
            who = "the process that referees native runs"
            try:
                with anyio.fail_after(SLACK * limits.native_seconds + limits.oracle_seconds):
                    async with self.server.child("referee", cpu_seconds=int(limits.native_seconds) + 1) as referee:
                        header, _ = await referee.ask(codec.pack(request))
                found: NativeFound | Broken | Failed = codec.unpack(header, NativeFound, Broken, Failed)
            except ChildDied as death:
                raise EvaluatorFailed(f"{who} {death.describe()}") from death
            except TimeoutError:
                raise EvaluatorFailed(f"{who} took too long with {problem.name}") from None
            except wire.BadMessage as error:
                raise EvaluatorFailed(f"{who} sent {error}") from error
        if isinstance(found, Broken):
            raise BrokenReference(found.why)
        if isinstance(found, Failed):
            raise EvaluatorFailed(f"{who}: {found.detail}")
        return found


@asynccontextmanager
async def open_native(gpu: str, config: EvaluatorConfig, alone: Path | None = None) -> AsyncIterator[NativePath]:
    """Native runs without a pool. `gpu`: a GPU's UUID, or "" for the CPU; `alone`: a lock file for runs side by side."""
    async with ForkServer(gpu) as server:
        yield NativePath(server, "cuda" if gpu else "cpu", config, "" if alone is None else str(alone))


def native_evaluation(found: NativeFound, floor_us: float, seconds: Seconds, *, measured: bool) -> Evaluation:
    """What a native run by `Way.JUDGED` amounts to as an evaluation, which says `trust: native`. `floor_us`: the least time that
    the problem's data take; without `measured`, times mean nothing. Who did the work, coverage and launches, is unknown."""
    ran = found.ended is NativeEnd.RAN
    if not ran:
        raised = Status.RUNTIME_ERROR if found.constructed else Status.INVALID
        status = {NativeEnd.RAISED: raised, NativeEnd.TIMEOUT: Status.TIMEOUT, NativeEnd.DIED: Status.CRASH}[found.ended]
        return Evaluation(status, printable(f"run natively: {found.detail}"), seconds=seconds, trust="native")
    status, detail = (Status.CORRECT, "") if found.matches else (Status.INCORRECT, printable(found.detail))
    if measured and found.matches and found.candidate_us < floor_us:
        status = Status.IMPLAUSIBLE
        detail = f"{found.candidate_us:.1f} us is less than the problem's data take ({floor_us:.1f} us)"
    if not (found.matches and measured):
        return Evaluation(status, detail, matches=found.matches, max_error=found.error, seconds=seconds, trust="native")
    speedup = found.reference_us / found.candidate_us
    return Evaluation(
        status, detail, matches=True, speedup=speedup, speedup_low=speedup, speedup_high=speedup,
        reference_us=found.reference_us, candidate_us=found.candidate_us, timing="measured", trials=found.calls,
        max_error=found.error, seconds=seconds, trust="native",
    )  # fmt: skip
