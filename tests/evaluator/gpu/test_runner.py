"""How a stay ends that has failed, and that nothing is given back in a context that is lost. The driver is played here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.evaluator.gpu.liveness import Indispensable
from rlkernel.evaluator.messages.endings import Failed
from rlkernel.evaluator.messages.gpu import Needed
from rlkernel.evaluator.program.schema import MalformedProgram
from rlkernel.types import Precision, Status


def played(room: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int | None) -> tuple[Any, Any, list[str]]:
    """(a runner whose candidate ends with `error`, its question, what is given back). code: the driver's error; -1: it hangs."""
    given: list[str] = []

    def lost(seconds: float) -> int | None:
        if code == -1:
            raise room.stopwatch.Hung
        return code

    class Runner(room.runner.Runner):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self._subjects, self._held = [], None

        def _examine(self, question: Any, body: bytes) -> Any:
            self._subjects = [SimpleNamespace(release=lambda: given.append("memory"))]
            raise error

    monkeypatch.setattr(room.runner, "lost", lost)
    monkeypatch.setattr(room.runner, "set_precision", lambda precision: None)
    monkeypatch.setattr(room.runner.gc, "collect", lambda: given.append("garbage"))
    reserved = {"reserved_bytes": {"all": {"current": 0}}}
    monkeypatch.setattr(room.runner.torch.cuda, "memory_stats_as_nested_dict", lambda: reserved)
    question = SimpleNamespace(task=SimpleNamespace(precision=Precision.PYTORCH, seconds=2.0))
    return Runner(), question, given


@pytest.mark.parametrize(
    ("name", "code", "status"),
    [
        ("hung", None, Status.TIMEOUT),
        ("strayed", None, Status.OUT_OF_BOUNDS),
        ("error", 700, Status.OUT_OF_BOUNDS),
        ("error", 719, Status.CRASH),
        ("error", -1, Status.TIMEOUT),
        ("no config", 700, Status.OUT_OF_BOUNDS),
        ("no config", -1, Status.TIMEOUT),
    ],
)
def test_a_lost_context_answers_before_anything_is_given_back(
    room: Any, monkeypatch: pytest.MonkeyPatch, name: str, code: int | None, status: Status
) -> None:
    errors = {
        "hung": room.stopwatch.Hung(), "strayed": room.session.Strayed("outside"), "error": RuntimeError("CUDA error"),
        "no config": room.tuning.NoConfig(),
    }  # fmt: skip
    runner, question, given = played(room, monkeypatch, errors[name], code)
    answer = runner.evaluate(question, b"")
    assert isinstance(answer, Failed) and (answer.status, answer.lost) == (status, True)
    assert given == []
    assert runner._held is errors[name]  # whose frames hold the candidate's tensors


def test_what_is_needed_is_handed_on_and_nothing_is_given_back(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, question, given = played(room, monkeypatch, Indispensable(3, {5: True}, spun=True), None)
    assert runner.evaluate(question, b"") == Needed(3, {5: True}, True, lost=True)
    assert (given, len(runner._subjects)) == ([], 1)


@pytest.mark.parametrize(
    ("error", "status", "detail"),
    [
        (MalformedProgram("no step"), Status.CRASH, "the trace is not a Program: no step"),
        (RuntimeError("CUDA out of memory"), Status.RUNTIME_ERROR, "forward needs more GPU memory than a candidate may have"),
        (IndexError("far"), Status.RUNTIME_ERROR, "IndexError: far"),
    ],
)
def test_a_healthy_context_gives_memory_back_and_goes_on(
    room: Any, monkeypatch: pytest.MonkeyPatch, error: Exception, status: Status, detail: str
) -> None:
    runner, question, given = played(room, monkeypatch, error, None)
    assert runner.evaluate(question, b"") == Failed(status, detail)
    assert (given, runner._subjects, runner._held) == (["memory", "garbage"], [], None)
