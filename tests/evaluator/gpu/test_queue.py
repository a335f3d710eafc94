"""How many steps are on their way to the GPU at a time. Events are played here."""

from __future__ import annotations

from typing import Any

import pytest

from rlkernel.evaluator.program.schema import Config, Launch, Op

LAUNCH = Launch(0, {}, (Config({}, {}, (1, 1, 1)),), 1)
LSTM = Op("aten.lstm.input", (), {}, (0,))


class Events:
    """Events that are made after so many steps, and waited for after so many."""

    def __init__(self, room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps = 0
        self.waited: list[tuple[int, int]] = []
        self.queue = room.queue.Queue(2.5)
        monkeypatch.setattr(room.queue, "mark", lambda: self.steps)
        monkeypatch.setattr(room.queue, "wait", self._wait)

    def _wait(self, event: int, seconds: float) -> None:
        assert seconds == 2.5
        self.waited.append((self.steps, event))

    def enqueue(self, *steps: Any) -> list[tuple[int, int]]:
        """Pairs: before which step the host has waited, and until which step was done."""
        for step in steps:
            self.queue.before(step)
            self.steps += 1
        found, self.waited = self.waited, []
        return found


def test_a_short_forward_waits_for_nothing_and_a_long_one_for_what_is_far_behind(
    room: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = Events(room, monkeypatch)
    assert events.enqueue(*[LAUNCH] * 47) == []
    assert events.enqueue(*[LAUNCH] * 50) == [(47, 15), (63, 31), (79, 47), (95, 63)]


def test_a_recurrent_layer_waits_for_all_that_is_on_its_way(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events(room, monkeypatch)
    assert events.enqueue(*[LAUNCH] * 20, LSTM) == [(20, 15), (20, 20)]


def test_what_never_ends_is_hung_before_the_queue_is_full(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    events = Events(room, monkeypatch)

    def hung(event: int, seconds: float) -> None:
        raise room.stopwatch.Hung

    monkeypatch.setattr(room.queue, "wait", hung)
    with pytest.raises(room.stopwatch.Hung):
        events.enqueue(*[LAUNCH] * 5000)
    assert events.steps < 100
