"""What the further processes do with what the first one sends."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.config import Run
from rlkernel.training import follower, ranks
from rlkernel.training.follower import Following, Job, follow
from rlkernel.training.spread import Advance, Refresh


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What the first process sends, in order; an error is raised. The end of the test finds signals and warnings as they were."""
    messages: list[Any] = []

    def receive() -> Any:
        message = messages.pop(0)
        if isinstance(message, Exception):
            raise message
        return message

    monkeypatch.setattr(ranks, "receive", receive)
    before = signal.getsignal(signal.SIGINT)
    with warnings.catch_warnings():
        yield messages
    signal.signal(signal.SIGINT, before)


def test_runs_are_trained_until_the_first_process_sends_none(
    sent: list[Any], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[Job] = []
    monkeypatch.setattr(follower, "_train", trained.append)
    jobs = [Job(run, tmp_path, None, 1, 64), Job(run, tmp_path, tmp_path / "checkpoint-2", 1, 64)]
    sent += [*jobs, None]
    assert follow() == 0
    assert trained == jobs and sent == []
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # Ctrl-C is the first one's affair
    assert [job.resume for job in jobs] == [None, str(tmp_path / "checkpoint-2")]


def test_without_the_first_process_a_follower_ends_with_status_1(sent: list[Any]) -> None:
    sent.append(ranks.Lost("another process is gone"))
    assert follow() == 1


def test_batches_and_the_end_come_from_the_first_process(sent: list[Any], tmp_path: Path) -> None:
    asked: list[Any] = []
    hooks = Following(SimpleNamespace(answer=asked.append))  # type: ignore[arg-type]
    sent += [Refresh(), Advance(((), ()), 32), ("groups",), False, True, Refresh(), None]
    assert hooks.rollout(0) == ("groups",)
    assert asked == [Refresh(), Advance(((), ()), 32)]
    assert (hooks.enough(), hooks.enough()) == (False, True)
    with hooks.lease():
        hooks.save(tmp_path)
    assert list(tmp_path.iterdir()) == []
    hooks.step_done(None)  # type: ignore[arg-type]  # measures, for which weights are needed
    assert sent == [] and asked[2:] == [Refresh()]
