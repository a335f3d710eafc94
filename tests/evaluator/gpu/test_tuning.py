"""Which configuration of a launch is taken."""

from __future__ import annotations

from typing import Any

import pytest
import torch


class Launches:
    """Launches whose times are given, in a list per configuration; a configuration without times cannot be launched."""

    def __init__(self, room: Any, monkeypatch: pytest.MonkeyPatch, us: dict[int, list[float]]) -> None:
        self._error, self._us = room.driver.DriverError, us
        self.now = 0.0
        launches = self

        class Mark:
            def __init__(self) -> None:
                self.at = launches.now

            def elapsed_time(self, later: Any) -> float:
                return float(later.at - self.at)

        monkeypatch.setattr(room.tuning, "mark", Mark)
        monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: None)

    def __call__(self, choice: int) -> None:
        if not self._us[choice]:
            raise self._error.__new__(self._error)
        self.now += self._us[choice].pop(0)


def test_the_fastest_by_the_median_is_taken(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first launch does not count: it loads. Medians of the three others: 5 of configuration 0, 4 of 2."""
    run = Launches(room, monkeypatch, {0: [90, 5, 5, 5], 2: [99, 4, 100, 4]})
    assert room.tuning.fastest([0, 2], run, 1.0) == 2


def test_what_cannot_be_launched_is_passed_over(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.driver, "lost_context", lambda: None)
    assert room.tuning.fastest([0, 1], Launches(room, monkeypatch, {0: [], 1: [1, 7, 7, 7]}), 1.0) == 1
    with pytest.raises(room.tuning.NoConfig):
        room.tuning.fastest([0], Launches(room, monkeypatch, {0: []}), 1.0)


def test_a_lost_context_is_not_passed_over(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.driver, "lost_context", lambda: 700)
    with pytest.raises(room.driver.DriverError):
        room.tuning.fastest([0, 1], Launches(room, monkeypatch, {0: [], 1: [1, 7, 7, 7]}), 1.0)
