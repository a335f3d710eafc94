"""Calls between the event loop and the trainer's thread.

What is cancelled on the event loop ends the thread as `anyio.from_thread.check_cancelled` does, and not as an error.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, TypeVarTuple

import anyio
import anyio.from_thread
import anyio.to_thread
from anyio.from_thread import BlockingPortal

from rlkernel.leaving import nobody_waits_for
from rlkernel.training import ranks

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_thread(call: Callable[[*Ts], T], *args: *Ts) -> T:
    """The result of a blocking call in a thread of its own, inside of which `on_loop` can be used."""
    work = [lambda: call(*args)]

    def cancellable() -> T:
        # The thread lets go of its function a moment after it has told the result: by then nothing of the call may be left in it.
        with cancellation():
            return work.pop()()

    return await anyio.to_thread.run_sync(cancellable)


async def in_daemon(call: Callable[[*Ts], T], *args: *Ts) -> T:
    """The result of a blocking call that nothing waits for when this is cancelled, not even the end of the process."""
    done, portal = anyio.Event(), BlockingPortal()
    found: concurrent.futures.Future[T] = concurrent.futures.Future()

    def work() -> None:
        try:
            found.set_result(call(*args))
        except BaseException as error:  # raised where it is waited for
            found.set_exception(error)
        with suppress(RuntimeError):  # the portal is closed: nobody waits
            portal.start_task_soon(done.set)

    thread = threading.Thread(target=work, daemon=True)
    try:
        async with portal:
            thread.start()
            await done.wait()
    except BaseException:
        nobody_waits_for(thread)
        raise
    return found.result()


def on_loop(call: Callable[[*Ts], Coroutine[Any, Any, T]], *args: *Ts) -> T:
    """The result of a coroutine function that runs on the event loop, for a caller in a thread."""
    with cancellation():
        return anyio.from_thread.run(call, *args)


@contextmanager
def cancellation() -> Iterator[None]:
    """In a thread: a cancelled call ends it without an error, even if the other processes of the run have ended already."""
    try:
        yield
    except (concurrent.futures.CancelledError, ranks.Lost):
        anyio.from_thread.check_cancelled()
        raise
