"""Turns as rows, and how a table stays small."""

from __future__ import annotations

import math
from typing import Any

from rlkernel.runs import turn_table


def test_a_table_is_bounded_first_by_shorter_texts_then_by_fewer_trajectories() -> None:
    def rows(count: int) -> list[list[dict[str, Any]]]:
        texts = dict.fromkeys(turn_table.TEXTS, "x" * 1_000)
        return [[{"at": f"{i}.{k}", **texts} for k in (1, 2)] for i in range(count)]

    whole = turn_table.bounded(rows(10))
    assert len(whole) == 20 and whole[0] == {"at": "0.1", **dict.fromkeys(turn_table.TEXTS, "x" * 1_000)}
    # 20 rows of 4 texts: with 600 characters and a remark of 22 each, 49,760 in all.
    cut = turn_table.bounded(rows(10), limit=50_000)
    assert len(cut) == 20 and {row["code"] for row in cut} == {"x" * 600 + "\n[400 more characters]"}
    # With 200 and the remark, 17,760; half of it is below 9,000.
    fewer = turn_table.bounded(rows(10), limit=9_000)
    assert [row["at"] for row in fewer] == [f"{i}.{k}" for i in (0, 2, 4, 6, 8) for k in (1, 2)]
    assert len(turn_table.bounded(rows(10), most=7)) == 6  # trajectories 0, 4 and 8


def test_a_row_says_where_a_turn_stands_and_what_it_was() -> None:
    facts = {"status": "correct", "speedup": 1.5, "timing": None, "coverage": math.nan, "detail": "fine"}
    turn = {"evaluation": facts, "completion": "plan\n```python\nx = 1\n```", "code": "x = 1\n", "reward": 1, "feedback": "go on"}
    trajectory = {"split": "validation", "step": 4, "problem": "p", "turns": [turn, {**turn, "code": None}]}
    ((first, second),) = turn_table.turn_rows("grpo-seed0", "grpo", 0, {3: trajectory})
    assert first == {
        "at": "grpo-seed0:3.1", "arm": "grpo", "seed": 0, "split": "validation", "step": 4, "problem": "p", "turn": 1,
        "status": "correct", "speedup": 1.5, "timing": "", "coverage": None, "reward": 1.0,
        "plan": "plan", "code": "x = 1\n", "feedback": "go on", "detail": "fine",
    }  # fmt: skip
    assert tuple(first) == turn_table.COLUMNS
    # Without code, the whole answer is the plan.
    assert (second["at"], second["code"], second["plan"]) == ("grpo-seed0:3.2", "", turn["completion"])
