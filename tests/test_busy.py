"""Seconds in which at least one thing went on, on a clock that the test moves."""

from __future__ import annotations

from dataclasses import dataclass

import anyio
import pytest

from rlkernel import busy
from rlkernel.busy import Busy

pytestmark = pytest.mark.anyio


@dataclass
class Clock:
    now: float = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(busy, "time", clock)
    return clock


async def test_what_overlaps_counts_once_and_what_still_goes_on_counts(clock: Clock) -> None:
    meter = Busy()
    with meter():  # 0 to 3
        clock.now = 1
        meter.begin()  # 1 to 5
        clock.now = 3
        assert (meter.active, meter.seconds) == (2, 3)
    clock.now = 5
    meter.end()
    clock.now = 9
    assert (meter.active, meter.seconds) == (0, 5)
    with pytest.raises(ValueError), meter():
        clock.now = 11
        raise ValueError
    assert (meter.active, meter.seconds) == (0, 7)


async def test_changes_are_told_to_watchers_and_to_who_waits(clock: Clock) -> None:
    meter, seen = Busy(), []
    meter.watchers.append(lambda: seen.append(meter.active))
    async with anyio.create_task_group() as tasks:
        woken = anyio.Event()

        async def wait() -> None:
            await meter.changed()
            woken.set()

        tasks.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        assert not woken.is_set()
        meter.begin()
        await woken.wait()
    meter.end()
    assert seen == [1, 0]
