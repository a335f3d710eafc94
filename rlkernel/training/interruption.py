"""The end of work by Ctrl-C or SIGTERM, after which nothing is left behind. Imports nothing that takes seconds."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Awaitable, Callable

import anyio
import anyio.abc

from rlkernel.training import ranks

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENT_SECONDS = 4.0
"""After how long a person is told that the end of the work is still waited for."""
STOPPING = "stopping: what is half done ends first (a checkpoint, a step of an evaluation); a kill would lose no more than Ctrl-C"


async def interruptible(work: Callable[[], Awaitable[None]]) -> bool:
    """Do `work`, and cancel it on Ctrl-C or SIGTERM. Returns whether that happened; everything is cleaned up by then."""
    interrupted = False
    patience = threading.Timer(PATIENT_SECONDS, lambda: print(STOPPING, file=sys.stderr, flush=True))
    patience.daemon = True

    async def watch(scope: anyio.CancelScope, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        nonlocal interrupted
        try:
            with anyio.open_signal_receiver(*SIGNALS) as signals:
                task_status.started()
                async for _ in signals:
                    if not interrupted:
                        patience.start()
                    interrupted = True
                    scope.cancel()
        finally:
            if interrupted and ranks.size() > 1:
                # The launcher passes on what a terminal has sent to all: once is enough.
                for number in SIGNALS:
                    signal.signal(number, signal.SIG_IGN)

    try:
        async with anyio.create_task_group() as tasks:
            await tasks.start(watch, tasks.cancel_scope)
            await work()
            tasks.cancel_scope.cancel()
    finally:
        patience.cancel()
    return interrupted
