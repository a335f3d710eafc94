"""Calls between the event loop and a thread: results, errors, and the end by cancellation."""

from __future__ import annotations

import concurrent.futures
import subprocess
import sys
import threading
import weakref
from typing import Any

import anyio
import pytest

from rlkernel.training import ranks
from rlkernel.training.threads import cancellation, in_daemon, in_thread, on_loop

pytestmark = pytest.mark.anyio


async def test_results_and_errors_go_both_ways() -> None:
    home = threading.get_ident()

    async def ask(number: int) -> tuple[int, bool]:
        return number + 1, threading.get_ident() == home

    def work(number: int) -> tuple[int, bool, bool]:
        answer, asked_at_home = on_loop(ask, number)
        return 10 * answer, asked_at_home, threading.get_ident() != home

    assert await in_thread(work, 3) == (40, True, True)

    async def fail() -> None:
        raise ValueError("on the loop")

    with pytest.raises(ValueError, match="on the loop"):
        await in_thread(lambda: on_loop(fail))


@pytest.mark.parametrize("raised", [concurrent.futures.CancelledError(), ranks.Lost("another process is gone")])
async def test_in_a_cancelled_run_what_follows_from_it_is_no_error(raised: BaseException) -> None:
    waiting = threading.Event()

    def work() -> None:
        waiting.set()
        with cancellation():
            while True:  # until the scope is cancelled
                try:
                    anyio.from_thread.check_cancelled()
                except BaseException:
                    raise raised from None

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            tasks.start_soon(lambda: anyio.to_thread.run_sync(waiting.wait))

            async def cancel() -> None:
                await anyio.to_thread.run_sync(waiting.wait)
                scope.cancel()

            tasks.start_soon(cancel)
            await in_thread(work)
    assert scope.cancelled_caught


async def test_what_was_called_is_let_go_when_its_result_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    run_sync = anyio.to_thread.run_sync

    async def keeping(function: Any, *args: Any) -> Any:
        kept.append((function, args))  # as a thread does that is slow to let go
        return await run_sync(function, *args)

    monkeypatch.setattr(anyio.to_thread, "run_sync", keeping)

    class Trainer:
        def train(self) -> int:
            return 3

    trainer = Trainer()
    alive = weakref.ref(trainer)
    assert await in_thread(trainer.train) == 3
    del trainer
    assert kept and alive() is None


async def test_in_a_run_that_goes_on_a_lost_process_is_an_error() -> None:
    def work() -> None:
        raise ranks.Lost("another process is gone")

    with pytest.raises(ranks.Lost):
        await in_thread(work)


@pytest.mark.anyio
async def test_nothing_waits_for_a_daemon_that_is_cancelled() -> None:
    began, goes_on, ended = threading.Event(), threading.Event(), threading.Event()

    def load() -> None:
        began.set()
        goes_on.wait()
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(in_daemon, load)
        # The event loop is free meanwhile.
        await anyio.to_thread.run_sync(began.wait)
        (thread,) = [thread for thread in threading.enumerate() if thread.daemon and thread.name.endswith("(work)")]
        tasks.cancel_scope.cancel()
    assert not ended.is_set()
    goes_on.set()
    thread.join()
    assert ended.is_set()


@pytest.mark.anyio
async def test_a_daemon_gives_its_result_or_its_error() -> None:
    assert await in_daemon(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await in_daemon(divmod, 1, 0)


GIVEN_UP = """
import atexit, sys, threading, anyio, torch
from rlkernel.errors import exit_status
from rlkernel.training.threads import in_daemon

def load(began):
    products = torch.ones(64, 64)
    while True:
        products = (products @ products).clamp(max=1)  # in C++, where the interpreter's end finds it
        began.set()

async def work():
    began = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(in_daemon, load, began)
        await anyio.to_thread.run_sync(began.wait)
        tasks.cancel_scope.cancel()

def command():
    atexit.register(print, "tidied up")
    anyio.run(work)
    print("ended")
    raise KeyboardInterrupt("it goes on")

sys.exit(exit_status(command))
"""


def test_a_command_ends_with_its_own_status_beside_a_daemon_that_computes() -> None:
    done = subprocess.run([sys.executable, "-c", GIVEN_UP], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "ended\ntidied up\n", "interrupted: it goes on\n")
