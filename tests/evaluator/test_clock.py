"""The time of each stage, and who is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rlkernel.evaluator.clock import Clock


def test_a_clock_lets_each_stage_take_place_in_a_context_of_the_watcher() -> None:
    told: list[str] = []

    @contextmanager
    def watch(name: str) -> Iterator[None]:
        told.append(name)
        try:
            yield
        finally:
            told.append(f"{name} ended")

    clock = Clock(watch)
    with pytest.raises(KeyError), clock.stage("trace"):
        raise KeyError
    with clock.stage("run"):
        assert told == ["trace", "trace ended", "run"]
    assert clock.seconds.trace > 0 and told[-1] == "run ended"
