"""Verdicts beside native runs: what agrees, what is told of what does not, and the page of results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import wild
from rlkernel.evaluator import wire
from rlkernel.evaluator.messages.native import NativeEnd, NativeFound
from rlkernel.evaluator.native.agreement import Judged, disagreements, native_from_json, native_to_json, speedups, summary, table
from rlkernel.types import Closeness, Evaluation, Status


def native(reference_us: float = 200.0, candidate_us: float = 100.0, *, close: bool = True) -> NativeFound:
    return NativeFound(
        NativeEnd.RAN, constructed=True, matches=close, close=Closeness.TIGHT if close else Closeness.NO, error=1e-7,
        reference_us=reference_us, candidate_us=candidate_us, claimed_us=candidate_us, proved_us=-5.0, calls=20,
    )  # fmt: skip


def ours(speedup: float | None, status: Status = Status.CORRECT, detail: str = "") -> Evaluation:
    if speedup is None:
        return Evaluation(status, detail)
    return Evaluation(status, detail, speedup=speedup, reference_us=200.0, candidate_us=200.0 / speedup, timing="measured")


RAISED = NativeFound(NativeEnd.RAISED, "line 3: ValueError: Conflicting meta-parameters: BLOCK", constructed=True)
JUDGED = [
    Judged("exact", ours(2.0), native()),
    Judged("near", ours(2.05), native()),  # 2.5 % off at 100 us: within 3 %
    Judged("far", ours(2.1), native()),  # 5 % off at 100 us
    Judged("short", ours(2.1), native(20.0, 10.0)),  # 5 % off at 10 us: within 10 %
    Judged("unearned", ours(3.0), RAISED),
    Judged("refused", ours(None, Status.INCORRECT, "output is wrong: relative error 2.00e-04, allowed 5e-05"), native()),
    Judged("refused alike", ours(None, Status.INCORRECT, "output is wrong: relative error 3.17e-04, allowed 5e-05"), native()),
    Judged("both wrong", ours(None, Status.INCORRECT, "output is wrong"), native(close=False)),
]


def test_what_agrees() -> None:
    assert [one.agrees for one in JUDGED] == [True] * 4 + [False] * 3 + [True]
    assert [one.close for one in JUDGED] == [True, True, False, True, None, None, None, None]
    assert [one.verdict for one in JUDGED] == ["right"] * 4 + ["raised", "right", "right", "wrong"]
    assert JUDGED[2].off == pytest.approx(0.05)
    assert summary(JUDGED) == {
        "accepted": 5, "natively_right": 4, "timed": 4, "speedups_agree": 3,
        "disagreements": ["unearned: natively raised: line 3: ValueError: Conflicting meta-parameters: BLOCK"],
    }  # fmt: skip


def test_the_table_counts_statuses_by_native_verdicts() -> None:
    assert table(JUDGED) == [
        "| our verdict | natively right | natively wrong | natively raised | natively timeout | natively died "
        "| natively no room |",
        "|---|---|---|---|---|---|---|",
        "| `correct` | 4 |  | 1 |  |  |  |",
        "| `incorrect` | 2 | 1 |  |  |  |  |",
        "",
        "4 of 6 natively right candidates accepted (67 %); 1 accepted that are not.",
    ]


@pytest.mark.parametrize("detail", ["OutOfMemoryError: CUDA out of memory. Tried", "its process was killed by SIGKILL"])
def test_a_run_that_had_no_memory_says_nothing_of_the_candidate(detail: str) -> None:
    lacked = Judged("a", ours(2.0), NativeFound(NativeEnd.DIED, detail))
    assert lacked.verdict == "no room"
    assert table([lacked])[-1] == "0 of 0 natively right candidates accepted; 0 accepted that are not."


def test_disagreements_stand_by_cause() -> None:
    assert disagreements(JUDGED) == [
        "- 2 natively right, ours `incorrect` (native error up to 1.0e-07): "
        "output is wrong: relative error #.##e-##, allowed #e-##",
        "    - refused",
        "    - refused alike",
        "- 1 natively raised, ours `correct` (native error up to 0.0e+00): "
        "line #: ValueError: Conflicting meta-parameters: BLOCK",
        "    - unearned",
    ]
    assert disagreements(JUDGED[:2]) == ["- none"]


def test_speedups_are_told_by_length() -> None:
    assert speedups(JUDGED) == [
        "Candidates of 100 us and more: 3, 1 within 2 %, 2 within 3 %, 3 within 10 %.",
        "Those whose reference ran alike, within 10 %: 3, 1 within 2 %, 2 within 3 %, 3 within 10 %.",
        "- far: native 2.00 (200 -> 100 us), ours 2.10 (200 -> 95 us)",
        "Candidates of less than 100 us: 1, 0 within 2 %, 0 within 3 %, 1 within 10 %.",
        "Those whose reference ran alike, within 10 %: 0, 0 within 2 %, 0 within 3 %, 0 within 10 %.",
        "- short: native 2.00 (20 -> 10 us), ours 2.10 (200 -> 95 us)",
    ]


def test_rows_are_read_back_and_checked() -> None:
    row = json.loads(json.dumps({"id": "a", **native_to_json(RAISED)}))
    assert native_from_json(row) == RAISED
    with pytest.raises(wire.BadMessage):
        native_from_json({**row, "calls": "many"})


def test_a_natively_judged_candidate_has_a_row_of_its_own() -> None:
    natively = Evaluation(Status.CORRECT, "", speedup=2.0, reference_us=200.0, candidate_us=100.0, trust="native")
    assert table([Judged("a", natively, native())])[2] == "| `correct, trust native` | 1 |  |  |  |  |  |"


def test_the_page_is_written_from_result_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = tmp_path / "native.jsonl", tmp_path / "ours.jsonl"
    files[0].write_text("".join(json.dumps({"id": one.id, **native_to_json(one.native)}) + "\n" for one in JUDGED))
    files[1].write_text("".join(json.dumps({"id": one.id, **one.evaluation.to_json()}) + "\n" for one in JUDGED[:-1]))
    page = tmp_path / "wild.md"
    wild.main([*map(str, files), "--page", str(page), "--card", "CARD"])
    text = page.read_text()
    assert "7 candidates on one CARD, from these repositories:\n\n- `" in text
    assert "4 of 6 natively right candidates accepted" in text
    assert "Of 6 natively right candidates 6 are within 1e-4, too, and 6 are within our bound on those inputs." in text
    assert capsys.readouterr().out in text
