"""The sample of accepted candidates that is run natively: who is in it, what is kept, and what results say of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlkernel.benchmark import audit, results, tables
from rlkernel.benchmark.trajectories import Ledger, TurnRow
from rlkernel.errors import BrokenReference
from rlkernel.evaluator.messages.native import NativeEnd, NativeFound
from rlkernel.policy.writer import Answer
from rlkernel.types import Closeness, Evaluation, Problem, Status

PROBLEMS = {name: Problem(name, 1, "train", "") for name in ("a", "b", "c", "d")}
FOUND = NativeFound(
    NativeEnd.RAN, constructed=True, matches=True, close=Closeness.TIGHT, reference_us=300.0,
    candidate_us=150.0, calls=20,
)  # fmt: skip


def evaluation(status: Status = Status.CORRECT, trust: str = "traced") -> Evaluation:
    right = status is Status.CORRECT
    return Evaluation(
        status, "", matches=right, speedup=2.0 if right else None, reference_us=300.0, candidate_us=150.0, timing="measured",
        trust="native" if trust == "native" else "traced",
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    kept = Ledger(tmp_path)
    facts = {"a": evaluation(), "b": evaluation(), "c": evaluation(Status.INCORRECT), "d": evaluation(trust="native")}
    for name, found in facts.items():
        kept.append(TurnRow(name, 0, 0, (), Answer("", "stop"), f"code of {name}", found, 0.0, "", 0.0))
    return kept


@pytest.mark.anyio
async def test_accepted_candidates_are_run_once(ledger: Ledger, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[str] = []

    async def run(problem: Problem, code: str) -> NativeFound:
        ran.append(code)
        if problem.name == "b" and len(ran) < 3:
            raise BrokenReference("b: no such device")
        return FOUND

    for _ in range(3):
        await audit.audit(tmp_path, ledger, PROBLEMS, run, 10, 0)
    assert sorted(ran) == [
        "code of a",
        "code of b",
        "code of b",
    ]  # what failed on our side is tried again, once it is kept no more
    assert capsys.readouterr().err == "not run natively: b trajectory 1 turn 1: b: no such device\n"
    assert audit.known(tmp_path) == {"a trajectory 1 turn 1": FOUND, "b trajectory 1 turn 1": FOUND}
    assert audit.results(tmp_path, ledger) == {
        "accepted": 2, "natively_right": 2, "timed": 2, "speedups_agree": 2, "disagreements": [],
    }  # fmt: skip


def test_the_sample_is_drawn_by_its_seed(ledger: Ledger) -> None:
    assert {audit.sample(ledger, 1, seed)[0].problem for seed in range(20)} == {"a", "b"}
    assert audit.sample(ledger, 1, 7) == audit.sample(ledger, 1, 7)
    assert len(audit.sample(ledger, 5, 0)) == 2


def test_results_count_native_verdicts_apart(ledger: Ledger, tmp_path: Path) -> None:
    found = results.write(tmp_path, {}, list(PROBLEMS.values()), dict.fromkeys(PROBLEMS, 1), 1, ledger)
    assert found["trust"] == {"native": 1, "traced": 2}
    assert found["audit"] is None
    shares = {name: scores["correct_rate"]["mean"] for name, scores in found["scores"].items()}
    assert shares == {"level 1": 0.5, "trust: native": 0.75}
    assert found["scores"]["level 1"]["statuses"] == {"correct": 2, "incorrect": 1, "untraceable": 1}
    lines = tables.notes(found)
    assert "1 correct turns could not be traced and were judged natively: only `trust: native` counts them" in lines
    (table,) = tables.tables(found)
    assert table.columns == ("", "level 1", "trust: native")
