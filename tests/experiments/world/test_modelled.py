"""Modelled against measured speedups of the shipped corpus: which answers count, and the ratios."""

from pathlib import Path

import pytest

from envs.world.suite import to_row, validation_tasks
from experiments.world import judged, modelled
from experiments.world.judged import Ledger
from experiments.world.modelled import answers, table
from rlkernel.types import Evaluation, Status

CHAIN, ROW = validation_tasks(["chain"])[0], validation_tasks(["row"])[0]


def said(code: str, speedup: float, coverage: float = 1.0, status: str = "correct") -> list[object]:
    facts = {"status": status, "speedup": speedup, "coverage": coverage, "timing": "measured"}
    return [f"Plan.\n```python\n{code}\n```", "", facts]


ROWS = [
    {"task": to_row(CHAIN), "exchanges": [said("one", 2.0), said("wrong", 9.0, status="incorrect"), said("one", 2.0)]},
    {"task": to_row(CHAIN), "exchanges": [said("two", 4.0), said("lazy", 1.0, coverage=0.2)]},
    {"task": to_row(ROW), "exchanges": [said("three", 1.0)]},
]


def test_different_right_answers_that_work_in_triton_count() -> None:
    assert {a.code.strip() for a in answers(ROWS, ("chain", "row"), 9, 0)} == {"one", "two", "three"}
    assert [a.task.family for a in answers(ROWS, ("chain", "row"), 1, 0)] == ["chain", "row"]
    assert answers(ROWS, ("window",), 9, 0) == ()


def test_a_ratio_is_modelled_by_measured(tmp_path: Path) -> None:
    chosen = answers(ROWS, ("chain", "row"), 9, 0)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    speedups = {"one": 2.0, "two": 12.0, "three": 2.0}
    for answer in chosen:
        ledger.add(answer.key, Evaluation(Status.CORRECT, "", speedup=speedups[answer.code.strip()]))
    # 2 by 2 and 12 by 4: their median is 2, their p10 1 + 0.1 x 2 = 1.2; 2 by 1 in the other family.
    assert [line.split() for line in table(chosen, ledger)[1:]] == [
        ["chain", "2", "1.20", "2.00", "2.80"], ["row", "1", "2.00", "2.00", "2.00"], ["all", "3", "1.20", "2.00", "2.80"],
    ]  # fmt: skip


def test_answers_that_are_wrong_here_have_no_ratio(tmp_path: Path) -> None:
    chosen = answers(ROWS, ("row",), 9, 0)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    ledger.add(chosen[0].key, Evaluation(Status.INCORRECT, ""))
    assert table(chosen, ledger)[1:] == [f"{'all':22}{0:8}"]


@pytest.mark.slow
def test_answers_are_modelled_and_the_ratios_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same command again judges nothing anew."""
    monkeypatch.setattr(modelled, "RUNS", tmp_path)
    monkeypatch.setattr(judged, "RUNS", tmp_path)
    for _ in range(2):
        assert modelled.main(["--count", "1", "--families", "chain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == lines[3:] and lines[1].split()[:2] == ["chain", "1"]
    assert len(list(tmp_path.glob("modelled_modelled_*.jsonl"))) == 1


@pytest.mark.parametrize("count", [1, 3])
def test_the_draw_is_the_same_each_time(count: int) -> None:
    assert answers(ROWS, ("chain",), count, 7) == answers(ROWS, ("chain",), count, 7)
