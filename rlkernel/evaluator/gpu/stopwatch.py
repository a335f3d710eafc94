"""Measures the device time of one call, with flushed caches, a filled queue, and CUDA events around the call.

    reset persisting L2 | read 2 x L2       | spin | start | the call's kernels | end
                                                   ^ if this has happened when the host has enqueued the rest, the run is void

Runs are enqueued back to back, so that earlier ones keep the GPU busy meanwhile; the spin does where they do not.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch

from rlkernel.evaluator.gpu import driver

MAX_SPIN_US = 50_000.0
"""The longest spin."""
SPIN_FACTOR = 1.6
"""The factor from the host's usual time to enqueue a call to the spin in front of it."""


class Hung(Exception):
    """The GPU has not finished in time. Nothing but the end of this process stops it."""


@dataclass(frozen=True, slots=True)
class Run:
    """One timed call, which may still be on its way."""

    start: torch.cuda.Event
    end: torch.cuda.Event
    host_us: float
    """The host's time to enqueue the call, in microseconds."""
    void: bool
    """Whether the call started before all of it was enqueued, so that gaps would count."""

    @property
    def us(self) -> float:
        """The call's device time in microseconds, known once `end` has happened."""
        return float(self.start.elapsed_time(self.end)) * 1000.0


def wait(event: torch.cuda.Event, seconds: float) -> None:
    """Wait until `event` has happened. Raises Hung; a CUDA error raises as torch reports it."""
    deadline = time.perf_counter() + seconds
    while not event.query():
        if time.perf_counter() > deadline and not event.query():  # the host itself may have been held up since it asked
            raise Hung


@functools.cache
def _main() -> torch.cuda.Stream:
    """Return the stream on which everything runs. It is looked up once, because torch takes 30 us for it."""
    return torch.cuda.current_stream()


_other: torch.cuda.Stream | None = None


def stream() -> torch.cuda.Stream:
    """Return the stream on which work is enqueued now, see `on_stream`."""
    return _main() if _other is None else _other


@contextmanager
def on_stream(other: torch.cuda.Stream) -> Iterator[None]:
    """Enqueue on another stream inside, where a graph is recorded."""
    global _other
    _main()  # it must not be looked up while another one is current
    _other = other
    try:
        yield
    finally:
        _other = None


def mark() -> torch.cuda.Event:
    """Enqueue an event that records its time behind what is enqueued so far."""
    event = torch.cuda.Event(enable_timing=True)
    event.record(stream())
    return event


def settle(seconds: float) -> None:
    """Wait until everything enqueued so far is done. Raises Hung."""
    wait(mark(), seconds)


def lost(seconds: float) -> int | None:
    """Wait until everything enqueued so far is done, and return the CUresult of an error that the context will not recover from;
    None while it is healthy. Raises Hung: the driver alone would wait for ever."""
    with suppress(RuntimeError):  # the error that the driver is asked about
        settle(seconds)
    return driver.lost_context()


class Stopwatch:
    """Times calls one after the other. `flush` enqueues the eviction of everything from L2."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._cycles_per_us = driver.clock_khz() / 1000.0
        self._last: torch.cuda.Event | None = None

    def run(self, call: Callable[[], Any], spin_us: float, *, unless_busy: bool = False) -> tuple[Any, Run]:
        """Enqueue one timed call, and return its result and its times to be.

        With `unless_busy` there is no spin while the last run still goes on. Raises DriverError.
        """
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        queue = stream()
        driver.reset_persisting_l2()
        self._flush()
        if not (unless_busy and self._last is not None and not self._last.query()):
            self.spin(spin_us)
        start.record(queue)
        begun = time.perf_counter()
        result = call()
        end.record(queue)
        self._last = end
        host_us = (time.perf_counter() - begun) * 1e6
        return result, Run(start, end, host_us, void=start.query())

    def spin(self, us: float) -> None:
        """Enqueue a wait of so many microseconds, in which the host enqueues what follows."""
        if us > 0:
            torch.cuda._sleep(int(us * self._cycles_per_us))


def spin_for(host_us: float) -> float:
    """Return how long to spin, in microseconds, for a call that takes `host_us` to enqueue."""
    return min(SPIN_FACTOR * host_us + 20.0, MAX_SPIN_US)
