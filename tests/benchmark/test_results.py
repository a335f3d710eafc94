"""What a benchmark leaves: results.json, turns.parquet, and tables, from a ledger written by hand."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from rlkernel.benchmark.results import PARQUET, RESULTS, by_level, by_turn, write
from rlkernel.benchmark.tables import MORE, SHOWN_TURNS, WIDTH, long_tables, notes, shorten, show, tables
from rlkernel.benchmark.trajectories import Ledger, TurnRow
from rlkernel.policy.writer import Answer
from rlkernel.types import Evaluation, Problem, Status

A, B, C = (Problem(name, level, "validation", "") for name, level in (("level1/a", 1), ("level2/b", 2), ("level2/c", 2)))
MANIFEST: dict[str, Any] = {"benchmark": {"problems": []}, "sizes": {}}
WRONG = Evaluation(Status.INCORRECT, "differs")
HACK = Evaluation(Status.NO_KERNEL, "torch did it", matches=True, speedup=9.0)


def good(speedup: float, coverage: float = 0.9, compiled_us: float | None = None) -> Evaluation:
    return Evaluation(
        Status.CORRECT, "", True, speedup, candidate_us=10.0, timing="measured", coverage=coverage, compiled_us=compiled_us
    )


def ledger(directory: Path, *turns: tuple[Problem, int, int, Evaluation | None]) -> Ledger:
    """turns: (problem, sample, turn, evaluation); no evaluation means that there was no room for an answer."""
    made = Ledger(directory)
    for problem, sample, turn, facts in turns:
        answer = None if facts is None else Answer("text", "stop", prompt_tokens=100, completion_tokens=7, cost=0.5, requests=2)
        made.append(TurnRow(problem.name, sample, turn, tuple(range(turn)), answer, "x = 1", facts, 1.0, "told", 2.0))
    return made


def printed(results: dict[str, Any], *, everything: bool = False) -> list[str]:
    console = Console(width=WIDTH, file=io.StringIO(), record=True, highlight=False)
    show("small", results, console, everything=everything)
    return console.export_text().splitlines()


WANTED = {"level1/a": 2, "level2/b": 1, "level2/c": 1}


@pytest.fixture
def results(tmp_path: Path) -> dict[str, Any]:
    """Two turns: a is solved once of two samples, b in its second turn, c cannot be judged."""
    made = ledger(
        tmp_path,
        (A, 0, 0, good(1.5)),
        (A, 0, 1, WRONG),
        (A, 1, 0, WRONG),
        (A, 1, 1, HACK),
        (B, 0, 0, WRONG),
        (B, 0, 1, good(1.1, 0.1)),
    )
    made.leave_out("level2/c", "the reference does not fit")
    return write(tmp_path, MANIFEST, [A, B, C], WANTED, 2, made)


def test_the_file_is_what_was_returned(tmp_path: Path, results: dict[str, Any]) -> None:
    assert json.loads((tmp_path / RESULTS).read_text()) == results
    assert not list(tmp_path.glob("*.draft"))


def test_counts_and_rates(results: dict[str, Any]) -> None:
    assert (results["problems"], results["complete"], results["timing"]) == (3, True, ["measured"])
    assert results["unscored"] == {"level2/c": "the reference does not fit"} and results["untried"] == []
    # Six answers of 100 + 7 tokens, 0.5 and two requests each.
    assert results["tokens"] == {"prompt": 600, "completion": 42, "answers_without_a_count": 0}
    assert (results["cost"], results["requests"]) == (3.0, 12)
    assert list(results["scores"]) == ["level 1", "level 2", "all"]
    everything = results["scores"]["all"]
    assert (everything["problems"], everything["samples"], everything["turns"]) == (2, 3, 6)
    # Fast@1 of the best turn: half of a's samples and all of b's.
    assert everything["eager"]["fast"]["best"]["1"]["at_least"]["mean"] == (1 / 2 + 1) / 2
    assert everything["eager"]["fast"]["best"]["1.2"]["at_least"]["mean"] == (1 / 2 + 0) / 2
    assert everything["eager"]["fast"]["last"]["1"]["at_least"]["mean"] == (0 + 1) / 2
    assert everything["compiled"] is None
    assert (everything["hacking_rate"]["mean"], everything["lazy_rate"]["mean"]) == (1 / 6, 1 / 6)
    assert everything["statuses"] == {"incorrect": 3, "correct": 2, "no_kernel": 1}


def test_turn_by_turn_the_best_grows_and_the_last_may_fall(results: dict[str, Any]) -> None:
    found = [(row["turn"], row["best"]["1"]["mean"], row["last"]["1"]["mean"]) for row in results["turns"]]
    assert found == [(1, 0.25, 0.25), (2, 0.75, 0.5)]


def test_one_level_is_not_shown_twice() -> None:
    tried = {"level1/a": [[good(1.0)]]}
    assert list(by_level(tried, {"level1/a": 1})) == ["level 1"]
    assert by_level({}, {}) == {}


def test_a_trajectory_that_goes_on_makes_results_incomplete(tmp_path: Path) -> None:
    made = ledger(tmp_path, (A, 0, 0, WRONG), (B, 0, 0, good(2.0)), (B, 0, 1, None))
    results = write(tmp_path, MANIFEST, [A, B, C], dict.fromkeys(WANTED, 1), 2, made)
    # B ended without room for a second answer; A lacks its second turn, and C everything.
    assert not results["complete"] and results["untried"] == ["level2/c"]
    lines = printed(results)
    assert "measured times; 2 of 3 problems scored, 1 without an answer yet" in lines
    assert lines[-2] == "INCOMPLETE: the numbers are those of the trajectories that were answered; the same command goes on"
    made.append(TurnRow("level1/a", 0, 1, (0,), None, None, None, 0.0, "", 0.0))
    made.leave_out("level2/c", "no")
    assert write(tmp_path, MANIFEST, [A, B, C], dict.fromkeys(WANTED, 1), 2, made)["complete"]


def test_only_wanted_samples_and_turns_are_counted(tmp_path: Path) -> None:
    made = ledger(tmp_path, (A, 0, 0, WRONG), (A, 0, 1, good(2.0)), (A, 1, 0, good(2.0)))
    results = write(tmp_path, MANIFEST, [A], {"level1/a": 1}, 1, made)
    assert results["scores"]["level 1"]["statuses"] == {"incorrect": 1}
    assert results["tokens"]["completion"] == 7


def test_rows_of_the_table_of_turns(tmp_path: Path, results: dict[str, Any]) -> None:
    table = pq.read_table(tmp_path / PARQUET)
    rows = table.to_pylist()
    assert [(row["problem"], row["trajectory"], row["turn"]) for row in rows] == [
        ("level1/a", 1, 1), ("level1/a", 1, 2), ("level1/a", 2, 1), ("level1/a", 2, 2), ("level2/b", 1, 1), ("level2/b", 1, 2),
    ]  # fmt: skip
    assert (rows[0]["speedup"], rows[0]["level"], rows[0]["shown"], rows[1]["shown"]) == (1.5, 1, [], [1])
    assert (rows[3]["status"], rows[3]["correct"], rows[3]["matches"]) == ("no_kernel", False, True)
    assert Evaluation.from_json(json.loads(rows[5]["evaluation"])) == good(1.1, 0.1)
    assert json.loads(table.schema.metadata[b"rlkernel"]) == MANIFEST


def test_the_tables(results: dict[str, Any]) -> None:
    scores, turns = tables(results)
    assert scores.columns == ("", "level 1", "level 2", "all")
    rows = {row[0]: row[1:] for row in scores.rows}
    assert list(rows)[:3] == ["correct", "Fast@1", "Fast@1.2"] and len(rows) == 8
    # One problem has no interval.
    assert rows["Fast@1"][:2] == ("50 %", "100 %") and rows["Fast@1"][2].startswith("75 % [")
    assert (rows["problems"], rows["trajectories"], rows["turns"]) == (("1", "1", "2"), ("2", "1", "3"), ("4", "2", "6"))
    # Every turn has one status, and every row of the parquet table is one turn.
    assert sum(results["scores"]["all"]["statuses"].values()) == 6
    assert [row[0] for row in turns.rows] == ["1", "2"]
    lines = printed(results)
    assert lines[0] == "small: correct 75 % [50, 100], Fast@1.2 25 % [0, 50]; 2 problems, measured time"
    assert lines[1] == "best turn, mean [95 % over problems]" and lines[-1] == MORE and max(map(len, lines)) <= WIDTH
    assert "measured times; 2 of 3 problems scored, 1 not scored" in lines
    assert "  not scored: the reference does not fit" in lines
    assert "12 requests, 600 + 42 tokens, cost 3.0000" in lines


def test_the_long_tables_are_there_on_demand(results: dict[str, Any]) -> None:
    (scores,) = long_tables(results)
    rows = {row[0]: row[1:] for row in scores.rows}
    assert rows["Fast@1 (>= 1)"][:2] == ("50 %", "100 %") and {"Fast@2 (>= 2)", "pass@1", "lazy, of turns"} <= set(rows)
    assert scores.title not in printed(results)
    every = printed(results, everything=True)
    assert scores.title in every and MORE not in every and max(map(len, every)) <= WIDTH


def test_a_second_baseline_has_a_table_of_its_own(tmp_path: Path) -> None:
    made = ledger(tmp_path, (A, 0, 0, good(2.0, compiled_us=5.0)), (B, 0, 0, good(2.0, compiled_us=30.0)))
    results = write(tmp_path, MANIFEST, [A, B], {"level1/a": 1, "level2/b": 1}, 1, made)
    eager, compiled = long_tables(results)
    (brief,) = tables(results)
    assert next(row for row in brief.rows if "torch" in row[0])[:3] == ("Fast@1 over torch.compile", "0 %", "100 %")
    assert compiled.title.startswith("against the reference under torch.compile")
    rows = {row[0]: row[1:] for row in compiled.rows}
    # 5 us and 30 us against the candidate's 10 us: 0.5 and 3.
    assert rows["Fast@1 (>= 1)"][:2] == ("0 %", "100 %")
    assert rows["problems that it compiles"] == ("1", "1", "2")
    assert {row[0]: row[1:] for row in eager.rows}["Fast@1 (>= 1)"][:2] == ("100 %", "100 %")


def test_many_turns_are_thinned_but_the_first_and_the_last_stay(tmp_path: Path) -> None:
    tried = {"level1/a": [[WRONG] * 29]}
    (table,) = tables({"scores": {}, "turns": by_turn(tried, 29)})
    shown = [int(row[0]) for row in table.rows]
    # Every third of 29: 29 / 12, rounded up.
    assert shown == [1, 3, 6, 9, 12, 15, 18, 21, 24, 27, 29] and len(shown) <= SHOWN_TURNS


def test_notes_are_bounded(results: dict[str, Any]) -> None:
    many = {**results, "unscored": {f"p{i}": "x" * 300 for i in range(8)}, "manifest": {"sizes": {"resized": ["a", "b"]}}}
    lines = notes(many)
    assert [len(line) for line in lines[1:6]] == [WIDTH] * 5
    assert lines[6:8] == ["  and 3 more: see results.json", "2 problems were made smaller as a whole: see results.json"]


def test_a_line_of_the_tables_width_is_left_as_it_is() -> None:
    assert shorten("x" * WIDTH) == "x" * WIDTH
    assert shorten("x" * (WIDTH + 1)) == "x" * (WIDTH - 3) + "..."


def test_nothing_tried_is_said(tmp_path: Path) -> None:
    results = write(tmp_path, MANIFEST, [A], {"level1/a": 1}, 1, Ledger(tmp_path))
    assert printed(results)[:2] == ["small: nothing was scored", "no times; 0 of 1 problem scored, 1 without an answer yet"]
