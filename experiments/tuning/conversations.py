"""Conversations from tables: a .parquet or .jsonl file, a directory of these, or a data set on the hub.

A row has its messages in a column, each with role and content (or with from and value), as JSON text, too; or it has a prompt and
an answer. A row that is no conversation is told by number and cause, and left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlkernel.errors import UsageError
from rlkernel.sources.load import TOLD, LeftOut
from rlkernel.sources.schemas import BadRow
from rlkernel.sources.tables import NoRow, Row, rows_of

MESSAGES = ("messages", "conversations", "conversation", "trajectory", "dialogue", "chat")
"""Columns that hold a conversation; the first that a row has is taken."""
ANSWERS = ("response", "completion", "answer")
"""Columns that hold the answer to the column `prompt`."""
ROLES = {"human": "user", "gpt": "assistant", "model": "assistant"}
"""What some tables call the roles."""
THOUGHTS = ("reasoning_content", "reasoning", "thinking")
"""Keys of a message under which thoughts stand apart from the answer."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation as the policy meets it: what it was told, and what it answered, turn by turn."""

    exchanges: tuple[tuple[str, str], ...]
    """The user's text and the assistant's, at least one pair. A system text stands before the first user's text, since a policy
    is given one text."""


@dataclass(frozen=True, slots=True)
class Conversations:
    """What a table holds."""

    place: str
    found: tuple[Conversation, ...]
    left_out: tuple[LeftOut, ...]

    def lines(self) -> Iterator[str]:
        """What people are told of the table."""
        rest = f", {len(self.left_out):,} rows left out" if self.left_out else ""
        yield f"{self.place}: {len(self.found):,} conversations{rest}"
        yield from (f"  row {row.number}: {row.cause}" for row in self.left_out[:TOLD])
        if len(self.left_out) > TOLD:
            yield f"  and {len(self.left_out) - TOLD:,} more"


def read_conversations(place: str, column: str = "") -> Conversations:
    """The conversations of a table. column: the one that holds the messages, where its name is none of `MESSAGES`.

    Raises UsageError: no such table, columns that nobody knows, or no row that is a conversation.
    """
    found: list[Conversation] = []
    left_out: list[LeftOut] = []
    for number, row in enumerate(rows_of(place), 1):
        try:
            if isinstance(row, NoRow):
                raise BadRow(row.cause)
            found.append(conversation(_messages(row, column, place)))
        except BadRow as error:
            left_out.append(LeftOut(number, str(error)))
    if not found:
        first = f"; row {left_out[0].number}: {left_out[0].cause}" if left_out else ": it has no rows"
        raise UsageError(f"{place}: no row is a conversation{first}")
    return Conversations(place, tuple(found), tuple(left_out))


def conversation(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """A conversation from messages: perhaps a system's, then the user's and the assistant's in turn. What follows the last answer
    is left out. Raises BadRow.

    >>> conversation([{"role": "user", "content": "Hi."}, {"from": "gpt", "value": "Hello."}]).exchanges
    (('Hi.', 'Hello.'),)
    """
    turns = [_turn(message) for message in messages]
    system = turns.pop(0)[1] if turns and turns[0][0] == "system" else ""
    exchanges = []
    for position, (role, text) in enumerate(turns):
        expected = ("user", "assistant")[position % 2]
        if role != expected:
            raise BadRow(f"message {position + 1 + bool(system)} is of {role!r}, expected {expected}")
        if role == "assistant":
            exchanges.append((turns[position - 1][1], text))
    if not exchanges:
        raise BadRow("nobody answers in it")
    if any(not answer.strip() for _, answer in exchanges):
        raise BadRow("an answer in it is empty")
    first, answer = exchanges[0]
    return Conversation((("\n\n".join(text for text in (system, first) if text), answer), *exchanges[1:]))


def _messages(row: Row, column: str, place: str) -> Sequence[Mapping[str, Any]]:
    """The messages of a row. Raises BadRow, and UsageError for a table with columns that nobody knows."""
    if column and column not in row:
        raise UsageError(f"{place}: it has no column {column}; its columns are {', '.join(row)}")
    name = column or next((name for name in MESSAGES if name in row), "")
    if name:
        return _list(row[name], name)
    answer = next((name for name in ANSWERS if name in row), "")
    if not answer or "prompt" not in row:
        raise UsageError(
            f"{place}: its columns are {', '.join(row)}, and none is {', '.join(MESSAGES)}: say which holds the messages, "
            "--column messages=NAME"
        )
    prompt = row["prompt"]
    before = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else _list(prompt, "prompt")
    return [*before, {"role": "assistant", "content": row[answer]}]


def _list(value: Any, name: str) -> Sequence[Mapping[str, Any]]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, Sequence) or isinstance(value, str) or not all(isinstance(item, Mapping) for item in value):
        raise BadRow(f"{name} is no list of messages")
    return value


def _turn(message: Mapping[str, Any]) -> tuple[str, str]:
    """Role and text of a message. Thoughts that stand apart come first, as Qwen3's template writes them."""
    role = message.get("role", message.get("from"))
    text = message.get("content", message.get("value"))
    if not isinstance(role, str) or not isinstance(text, str):
        raise BadRow("a message has no role, or its content is no text")
    role = ROLES.get(role, role)
    thoughts = next((message[key] for key in THOUGHTS if message.get(key)), None) if role == "assistant" else None
    if isinstance(thoughts, str) and "</think>" not in text:
        text = "<think>\n" + thoughts.strip("\n") + "\n</think>\n\n" + text.lstrip("\n")
    return role, text
