from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from experiments.tuning.conversations import conversation, read_conversations
from rlkernel.errors import UsageError
from rlkernel.sources.schemas import BadRow
from tests.experiments.tuning.tiny import assistant, user

TWO = [user("Do it."), assistant("Done."), user("Better."), assistant("Better so.")]
PAIRS = (("Do it.", "Done."), ("Better.", "Better so."))


def table(tmp_path: Path, rows: list[Any]) -> str:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize(
    "row",
    [
        {"messages": TWO, "problem": "x"},
        {"messages": json.dumps(TWO)},
        {"conversations": [{"from": ("human", "gpt")[k % 2], "value": turn["content"]} for k, turn in enumerate(TWO)]},
        {"prompt": TWO[:3], "response": "Better so."},
        {"messages": [*TWO, user("Still better.")]},
    ],
    ids=["messages", "as text", "from and value", "prompt and response", "a last word without an answer"],
)
def test_forms_of_one_conversation(tmp_path: Path, row: dict[str, Any]) -> None:
    assert [found.exchanges for found in read_conversations(table(tmp_path, [row])).found] == [PAIRS]


def test_a_prompt_as_text_and_a_column_of_ones_own(tmp_path: Path) -> None:
    found = read_conversations(table(tmp_path, [{"prompt": "Do it.", "completion": "Done."}])).found
    assert found[0].exchanges == PAIRS[:1]
    path = table(tmp_path, [{"log": TWO}])
    with pytest.raises(UsageError, match=r"its columns are log, and none is messages.*--column messages=NAME"):
        read_conversations(path)
    assert read_conversations(path, "log").found[0].exchanges == PAIRS


def test_a_system_text_stands_before_the_first_users_and_thoughts_before_their_answer() -> None:
    thought = {"role": "assistant", "content": "\nDone.", "reasoning_content": "Hm.\n"}
    found = conversation([{"role": "system", "content": "Be quick."}, user("Do it."), thought, *TWO[2:]])
    assert found.exchanges == (("Be quick.\n\nDo it.", "<think>\nHm.\n</think>\n\nDone."), PAIRS[1])
    kept = conversation([user("a"), {**thought, "content": "<think>\nOwn.\n</think>\nDone."}])
    assert kept.exchanges == (("a", "<think>\nOwn.\n</think>\nDone."),)


@pytest.mark.parametrize(
    ("messages", "cause"),
    [
        ([user("a"), user("b")], "message 2 is of 'user', expected assistant"),
        ([{"role": "system", "content": "s"}, assistant("b")], "message 2 is of 'assistant', expected user"),
        ([user("a"), assistant("b"), {"role": "tool", "content": "c"}], "message 3 is of 'tool', expected user"),
        ([user("a")], "nobody answers in it"),
        ([], "nobody answers in it"),
        ([user("a"), assistant(" \n")], "an answer in it is empty"),
        ([{"role": "user", "content": None}], "a message has no role, or its content is no text"),
    ],
)
def test_what_is_no_conversation(messages: list[dict[str, Any]], cause: str) -> None:
    with pytest.raises(BadRow, match=cause):
        conversation(messages)


def test_bad_rows_are_told_and_only_a_table_of_bad_rows_is_refused(tmp_path: Path) -> None:
    found = read_conversations(table(tmp_path, [{"messages": "x"}, {"messages": TWO}, {"messages": []}]))
    assert next(found.lines()).endswith("t.jsonl: 1 conversations, 2 rows left out")
    assert [(row.number, row.cause) for row in found.left_out] == [
        (1, "messages is no list of messages"),
        (3, "nobody answers in it"),
    ]
    with pytest.raises(UsageError, match=r"t\.jsonl: no row is a conversation; row 1: messages is no list of messages"):
        read_conversations(table(tmp_path, [{"messages": 3}]))
