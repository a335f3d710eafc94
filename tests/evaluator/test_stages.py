"""The stages of an evaluation, with children that answer as they are told."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from rlkernel.errors import UsageError
from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.messages.children import Binaries
from rlkernel.evaluator.messages.endings import Unable
from rlkernel.evaluator.processes.fork_server import ForkServer
from rlkernel.evaluator.program.compiled_ahead import MOST_ASKED, Asked, KernelFacts
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.program.variant import Specs
from rlkernel.evaluator.stages import Stages
from rlkernel.types import Status

PROGRAM = Program((), (), (), {}, (), (), None)


class Asking(Stages):
    """The stages of a candidate that compiles one kernel after the other ahead, each in so many seconds."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.config = EvaluatorConfig(limits=Limits(compile_seconds=60))
        self.clock, self.compile_seconds, self.compiled = clock, seconds, 0

    async def job(self, kind: str, question: bytes, seconds: int, *wanted: Any) -> tuple[Any, bytes, float]:
        return Asked(str(self.compiled), PROGRAM, Specs((), ())), b"", 0.0

    async def _facts(self, asked: Asked) -> tuple[KernelFacts, float]:
        self.compiled += 1
        return KernelFacts(asked.key, 16, 0, 0, 4, 1), self.compile_seconds


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("seconds", "status", "compiled"),
    [(0.0, Status.UNTRACEABLE, MOST_ASKED), (59.0, Status.TIMEOUT, 2)],  # 59 s are allowed, 118 s are not
)
async def test_kernels_that_are_compiled_ahead_share_the_time_of_one_compilation(
    seconds: float, status: Status, compiled: int
) -> None:
    clock = Clock()
    asking = Asking(clock, seconds)
    with pytest.raises(Ended) as ended:
        await asking.trace("", (), clock)
    assert (ended.value.status, asking.compiled) == (status, compiled)


class Lacking(Stages):
    """The stages where a compile child is unable to work."""

    def __init__(self, folder: Path, number: int) -> None:
        self.config, self._directory, self._number = EvaluatorConfig(), folder / "kept", number
        self._server = ForkServer()
        self._server.scratch = folder

    async def job(self, kind: str, question: Any, seconds: int, *wanted: Any, **body: Any) -> tuple[Any, bytes, float]:
        assert (kind, wanted) == ("compile", (Binaries, Unable))
        return Unable(self._number, "/tmp/x"), b"", 0.0


@pytest.mark.anyio
async def test_what_the_machine_lacks_ends_the_command_and_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^the disk is full while /tmp/x was written: free some space"):
        await Lacking(tmp_path, errno.ENOSPC).compile(PROGRAM, Specs((), ()), None)
    with pytest.raises(Ended) as ended:  # a number that tells of nothing of the kind
        await Lacking(tmp_path, errno.ENAMETOOLONG).compile(PROGRAM, Specs((), ()), None)
    assert (ended.value.status, ended.value.detail) == (
        Status.CRASH,
        f"the process that was compiling sent the error number {errno.ENAMETOOLONG}",
    )
