"""Watches a card while it is measured on, for its clocks, for throttling and for processes that are not ours."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.abc
import anyio.to_thread

from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.cards.gpus import Gpu, Reading


@dataclass(slots=True)
class Record:
    """What the readings of one card have said so far."""

    samples: int = 0
    last: Reading | None = None
    sm_mhz_min: int | None = None
    """The lowest clock among the readings during which the card worked: an idle clock says nothing about a measurement."""
    sm_mhz_max: int | None = None
    temperature_c_max: int | None = None
    throttle: dict[str, int] = field(default_factory=dict)
    """The number of readings that showed each reason."""
    foreign: dict[int, int | None] = field(default_factory=dict)
    """The most bytes that each foreign process held, by pid."""
    failure: str | None = None
    """The reason why sampling ended early; None if it did not."""

    def add(self, reading: Reading, own_pids: Collection[int] = ()) -> None:
        """Take one reading into account. `own_pids` are our own processes, see `gpus.foreign`."""
        self.samples += 1
        self.last = reading
        if reading.sm_mhz is not None and reading.utilisation != 0:
            self.sm_mhz_min = min(reading.sm_mhz, self.sm_mhz_min or reading.sm_mhz)
            self.sm_mhz_max = max(reading.sm_mhz, self.sm_mhz_max or reading.sm_mhz)
        if reading.temperature_c is not None:
            self.temperature_c_max = max(reading.temperature_c, self.temperature_c_max or reading.temperature_c)
        for reason in reading.throttle or ():
            self.throttle[reason] = self.throttle.get(reason, 0) + 1
        for pid, held in gpus.foreign(reading, own_pids):
            self.foreign[pid] = max(held or 0, self.foreign.get(pid) or 0) or None

    def summary(self) -> dict[str, Any]:
        """Return the record in a form fit for JSON, with megahertz, degrees Celsius and MiB."""
        return {
            "samples": self.samples,
            "sm_mhz": None if self.last is None else self.last.sm_mhz,
            "sm_mhz_min": self.sm_mhz_min,
            "sm_mhz_max": self.sm_mhz_max,
            "temperature_c_max": self.temperature_c_max,
            "throttle": dict(sorted(self.throttle.items())),
            "foreign_mib": {str(pid): None if held is None else held >> 20 for pid, held in sorted(self.foreign.items())},
            "failure": self.failure,
        }


class Watch:
    """Reads a card on entry, and then every `interval` seconds in a worker thread.

    Use it as `async with Watch(gpu) as watch: ...; watch.summary()`. `own_pids` is asked at every reading, because processes of
    ours are replaced. A card that stops answering ends the sampling and is named by `record.failure`; the process that measures
    learns of it from CUDA. Raises ValueError for an interval under a second: reading takes the driver's locks, which may
    disturb what is timed.
    """

    def __init__(self, gpu: Gpu, interval: float = 1.0, own_pids: Callable[[], Collection[int]] = tuple) -> None:
        if interval < 1:
            raise ValueError(f"interval is {interval} s: use 1 or more, faster sampling disturbs what is timed")
        self.gpu = gpu
        self.record = Record()
        self._interval = interval
        self._own_pids = own_pids
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            stack.enter_context(gpus.session())
            tasks = await stack.enter_async_context(anyio.create_task_group())
            stack.callback(tasks.cancel_scope.cancel)
            await tasks.start(self._sample)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._stack.__aexit__(kind, error, trace)
        except BaseExceptionGroup as group:
            if error is not None and group.exceptions == (error,):
                return False  # the body's own exception, as it was before the task group wrapped it
            raise

    async def _sample(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        answers = await self._read()
        task_status.started()
        while answers:
            await anyio.sleep(self._interval)
            answers = await self._read()

    async def _read(self) -> bool:
        try:
            reading = await anyio.to_thread.run_sync(gpus.read, self.gpu)
        except gpus.GpuUnavailable as error:
            self.record.failure = str(error)
            return False
        self.record.add(reading, self._own_pids())
        return True

    @property
    def notices(self) -> tuple[str, ...]:
        """Return a line for each thing seen that makes times on this card less trustworthy."""
        record, card = self.record, f"cuda:{self.gpu.index} ({self.gpu.name})"
        lines = []
        if record.throttle:
            reasons = ", ".join(f"{reason} in {count}" for reason, count in sorted(record.throttle.items()))
            lines.append(f"{card} was throttled while it measured: {reasons} of {record.samples} readings")
        if record.foreign:
            shown = ", ".join(str(pid) for pid in sorted(record.foreign)[:4])
            lines.append(f"{card} is used by other processes too ({shown}): their work is in our times")
        if record.failure is not None:
            lines.append(f"{card} is no longer watched: {record.failure}")
        return tuple(lines)

    def summary(self) -> dict[str, Any]:
        """Return the record with the card's name and UUID, in a form fit for JSON."""
        return {"gpu": self.gpu.name, "uuid": self.gpu.uuid, **self.record.summary()}
