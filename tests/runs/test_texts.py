"""Texts of a run: lines of JSON, cut texts, and the parts of an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rlkernel.errors import UsageError
from rlkernel.runs.texts import TEXT_LIMITS, Steps, answer_parts, cut, jsonl


def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n{"a": "\u2028"}\nbroken\n')
    rows = jsonl(path)
    assert [next(rows), next(rows)] == [{"a": 1}, {"a": "\u2028"}]
    with pytest.raises(UsageError, match=r"rows\.jsonl, line 3: not JSON: .*; the run's own command mends it, unless"):
        next(rows)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.jsonl: there is no such file; give the directory of a run"):
        next(jsonl(tmp_path / "none.jsonl"))


class Counted(Steps):
    """Notes which lines are read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.read: list[int] = []

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        self.read.append(number)
        return super()._row(line, number)


def test_the_rows_of_a_step_are_found_while_the_file_grows_and_each_line_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "transcripts.jsonl"
    steps = Counted(path)
    assert steps.rows("train", 1) == {}
    path.write_text('{"split": "train", "step": 1, "n": "\u00fc"}\n{"split": "validation", "step": 1}\n')
    assert steps.rows("validation", 1) == {2: {"split": "validation", "step": 1}}
    with path.open("a") as file:
        file.write('{"split": "train", "step": 1, "n": 2}\n{"split": "train", "step": 2}\n')
    steps.read.clear()
    assert {number: row["n"] for number, row in steps.rows("train", 1).items()} == {1: "ü", 3: 2}
    assert steps.read == [3, 4, 1, 3], "the two lines that are new, and the two that were asked for"
    path.write_text(path.read_text() + "{}{}\n")
    with pytest.raises(UsageError, match=r"transcripts\.jsonl, line 5: not JSON: .*or delete the run$"):
        steps.rows("train", 2)


def test_a_cut_text_says_how_much_is_missing() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 5) == "abcde\n[1 more characters]"
    assert cut("", 0) == ""


def test_limits_become_smaller() -> None:
    assert sorted(TEXT_LIMITS, reverse=True) == list(TEXT_LIMITS)


@pytest.mark.parametrize(
    ("completion", "code", "parts"),
    [
        ("Plan.\n```python\nx = 1\n```\nDone.", "x = 1\n", ("Plan.", "x = 1\n", "Done.")),
        # The last of two blocks is the candidate; the first belongs to the plan.
        ("```\nx = 1\n```\nor\n```\nx = 2\n```", "x = 2\n", ("```\nx = 1\n```\nor", "x = 2\n", "")),
        ("x = 1", "x = 1", ("", "x = 1", "")),
        # Code that is not in the answer as it stands, since it was extracted another way.
        ("Plan.\n```python\n  x = 1\n```", "y = 1", ("Plan.", "y = 1", "")),
        ("Plan.\n```python\n```", "", ("Plan.", "", "")),
        ("  I cannot. ", None, ("I cannot.", None, "")),
    ],
)
def test_an_answer_is_a_plan_code_and_a_rest(completion: str, code: str | None, parts: tuple[str, str | None, str]) -> None:
    assert answer_parts(completion, code) == parts
