"""The order in which a timed call is enqueued, and when its time does not count. Events are played here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest


class Event:
    """An event that has happened or not; `at` in milliseconds."""

    def __init__(self, at: float = 0.0, *, happened: bool = True) -> None:
        self.at, self.happened = at, happened

    def query(self) -> bool:
        return self.happened

    def elapsed_time(self, other: Event) -> float:
        return other.at - self.at


@pytest.mark.parametrize(("host_us", "spin"), [(0.0, 20.0), (100.0, 180.0), (10_000.0, 16_020.0), (40_000.0, 50_000.0)])
def test_the_spin_covers_the_hosts_time(room: Any, host_us: float, spin: float) -> None:
    assert room.stopwatch.spin_for(host_us) == pytest.approx(spin)  # 1.6 times as long and 20 us, at most 50 ms


def test_a_runs_time_is_in_microseconds(room: Any) -> None:
    assert room.stopwatch.Run(Event(1.0), Event(1.25), 5.0, void=False).us == pytest.approx(250.0)


def test_what_never_happens_is_hung(room: Any) -> None:
    room.stopwatch.wait(Event(), 0.0)
    with pytest.raises(room.stopwatch.Hung):
        room.stopwatch.wait(Event(happened=False), 0.0)


class Enqueued:
    """Everything that is enqueued, in order. busy: whether the last run still goes on."""

    def __init__(self, room: Any, monkeypatch: pytest.MonkeyPatch, *, started: bool) -> None:
        self.log: list[str] = []
        log, names = self.log, iter(["start", "end"] * 9)

        class Recorded(Event):
            def __init__(self, enable_timing: bool) -> None:
                super().__init__(happened=False)
                self.name = next(names)

            def record(self, stream: object) -> None:
                log.append(self.name)
                self.happened = started and self.name == "start"

        torch = SimpleNamespace(cuda=SimpleNamespace(Event=Recorded, _sleep=lambda cycles: log.append(f"spin {cycles}")))
        monkeypatch.setattr(room.stopwatch, "torch", torch)
        monkeypatch.setattr(room.stopwatch, "stream", object)
        monkeypatch.setattr(room.driver, "clock_khz", lambda: 2_000_000)
        monkeypatch.setattr(room.driver, "reset_persisting_l2", lambda: log.append("reset"))
        self.watch = room.stopwatch.Stopwatch(lambda: log.append("flush"))

    def run(self, spin_us: float, *, unless_busy: bool = False) -> Any:
        def call() -> str:
            self.log.append("call")
            return "result"

        result, run = self.watch.run(call, spin_us, unless_busy=unless_busy)
        assert result == "result"
        return run


def test_caches_are_flushed_and_the_queue_is_held_before_the_clock_starts(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueued = Enqueued(room, monkeypatch, started=False)
    run = enqueued.run(100.0)
    assert enqueued.log == ["reset", "flush", "spin 200000", "start", "call", "end"]  # 100 us at 2 GHz
    assert not run.void
    assert run.host_us > 0


def test_a_call_that_began_before_all_of_it_was_enqueued_is_void(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Enqueued(room, monkeypatch, started=True).run(0.0).void


def test_no_spin_behind_a_run_that_still_goes_on(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    enqueued = Enqueued(room, monkeypatch, started=False)
    for unless_busy in (True, True, False):
        enqueued.run(1.0, unless_busy=unless_busy)
    spins = [index for index, what in enumerate(enqueued.log) if what.startswith("spin")]
    # the first finds no other run, the second one that goes on, the third may not rely on it
    assert spins == [2, 13]
