"""What limits a child's time: its own work and its own waiting, and not what else the machine does."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rlkernel.evaluator import stages as stages_module
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.messages.children import TraceRequest, Traces
from rlkernel.evaluator.processes import spending
from rlkernel.evaluator.processes.fork_server import ForkServer
from rlkernel.evaluator.program.variant import Variant
from rlkernel.evaluator.stages import Stages
from rlkernel.types import Status

ENDLESS = "while True:\n    pass\n"
DONE = "raise ValueError('done')\n"
"""How a module says that it was not ended before."""


@pytest.fixture(scope="module")
async def server(anyio_backend: str) -> AsyncIterator[ForkServer]:
    async with ForkServer() as opened:
        await opened.ready()
        yield opened


async def end_of(server: ForkServer, code: str, seconds: int, folder: Path) -> tuple[Status, str]:
    """What becomes of a module whose tracing may take so many seconds."""
    stages = Stages(server, EvaluatorConfig(limits=Limits(trace_seconds=seconds)), folder)
    request = TraceRequest(code, "h200", (Variant([[], {"dict": []}], []),))
    with pytest.raises(Ended) as ended:
        await stages.job("trace", request, seconds, Traces)
    return ended.value.status, ended.value.detail


def started(stack: ExitStack, code: str) -> subprocess.Popen[bytes]:
    """A process with this code, which is killed at the end."""
    made = stack.enter_context(subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE))
    stack.callback(made.kill)
    return made


@pytest.mark.anyio
async def test_a_busy_machine_ends_nobody_who_would_pass_on_an_idle_one(server: ForkServer, tmp_path: Path) -> None:
    code = f"import time\nwhile time.process_time() < 0.8:\n    pass\n{DONE}"
    processors = os.sched_getaffinity(0)
    one = min(processors)
    took = 0.0
    with ExitStack() as stack:
        os.sched_setaffinity(server.pid, {one})
        stack.callback(os.sched_setaffinity, server.pid, processors)
        while took <= 2:  # more and more others, until 0.8 s of processor time surely take more than the limit on the clock
            for _ in range(5):
                os.sched_setaffinity(started(stack, ENDLESS).pid, {one})
            since = time.monotonic()
            assert await end_of(server, code, 2, tmp_path) == (Status.INVALID, "line 4: ValueError: done")
            took = time.monotonic() - since


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "why"),
    [
        (ENDLESS, "took more than 1 s of processor time"),
        (f"import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n{ENDLESS}", "took more than 1 s of processor time"),
        ("import time\ntime.sleep(1000)\n", "waited for more than 1 s"),
        ("import threading\nthreading.Lock().acquire() and threading.Event().wait()\n", "waited for more than 1 s"),
    ],
)
async def test_a_timeout_says_what_took_too_long(server: ForkServer, tmp_path: Path, code: str, why: str) -> None:
    assert await end_of(server, code, 1, tmp_path) == (Status.TIMEOUT, f"tracing ModelNew {why}")


@pytest.mark.anyio
async def test_who_waits_and_works_in_turn_is_ended_by_the_clock(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages_module, "BACKSTOP", 1)
    both = "import time\nwhile True:\n    time.sleep(0.1)\n    until = time.process_time() + 0.02\n"
    both += "    while time.process_time() < until:\n        pass\n"
    assert await end_of(server, both, 3, tmp_path) == (Status.TIMEOUT, "tracing ModelNew took more than 3 s of wall time")


def test_a_look_tells_who_runs_from_who_waits() -> None:
    with ExitStack() as stack:
        works, waits = (started(stack, code) for code in (ENDLESS, "input()"))
        time.sleep(1.0)
        working, waiting = spending.look(works.pid), spending.look(waits.pid)
        time.sleep(1.0)
        assert working and working[0] and (found := spending.look(works.pid)) and found[1] > working[1]
        assert waiting and not waiting[0] and spending.look(waits.pid) == waiting
    assert spending.look(works.pid) is None
