"""What is left when the fork server or the pool is gone: nothing."""

from __future__ import annotations

import os
import signal

import anyio
import psutil
import pytest

from rlkernel.evaluator.processes.child import Child, ChildDied
from rlkernel.evaluator.processes.fork_server import ForkServer, ZygoteDied


def _running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def _ended(process: psutil.Process) -> None:
    with anyio.fail_after(300):
        while _running(process):  # noqa: ASYNC110  (nobody tells of the end of another's child)
            await anyio.sleep(0.01)


@pytest.mark.anyio
async def test_a_child_does_not_outlive_the_fork_server() -> None:
    async with ForkServer() as server, server.child("oracle") as child:
        await child.started.wait()
        process = psutil.Process(child.pid)
        os.kill(server.pid, signal.SIGKILL)
        await _ended(process)
        await child.ended.wait()
        with pytest.raises(ZygoteDied, match="the fork server ended"):
            async with server.child("oracle"):
                pass


@pytest.mark.anyio
async def test_a_kill_through_a_dead_fork_server_kills_and_raises_nothing() -> None:
    async with ForkServer() as server, server.child("oracle") as child:
        await child.started.wait()
        process, zygote = psutil.Process(child.pid), psutil.Process(server.pid)
        os.kill(server.pid, signal.SIGKILL)
        while _running(zygote):  # holds the event loop, so that the listener has not heard of it
            os.sched_yield()
        assert _running(process) and not child.ended.is_set()
        server.kill(child)
        await _ended(process)


@pytest.mark.anyio
async def test_an_untrusted_child_dies_with_the_fork_server_though_nobody_kills_it() -> None:
    async with ForkServer() as server, server.child("trace", cpu_seconds=60, memory_bytes=1 << 30) as child:
        await child.started.wait()
        process = psutil.Process(child.pid)
        os.kill(server.pid, signal.SIGKILL)
        while _running(process):  # holds the event loop, so that the listener cannot end it
            os.sched_yield()


@pytest.mark.anyio
async def test_who_waits_for_an_answer_is_told_when_the_child_is_closed() -> None:
    async def ask(child: Child) -> None:
        with pytest.raises(ChildDied):
            await child.ask(b"")  # which the child never answers

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks, ForkServer() as server:
            async with server.child("oracle") as child:
                await child.started.wait()
                tasks.start_soon(ask, child)
                await anyio.wait_all_tasks_blocked()
