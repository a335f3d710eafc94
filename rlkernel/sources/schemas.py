"""Tables whose columns are known: each has an adapter from a row to the parts of a problem. `SCHEMAS` is the registry.

The columns are those that the data sets' own pages show (November 2026).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rlkernel.sources.renaming import as_model
from rlkernel.sources.tables import Row
from rlkernel.types import Split


class BadRow(ValueError):
    """A row that is no problem; the message is the cause."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a row says of its problem."""

    name: str
    level: int
    """0 where the row has none."""
    source: str
    prompt: str = ""
    """The row's own prompt; empty where it has none."""
    split: Split | None = None


@dataclass(frozen=True)
class Schema:
    """A table that is recognised by its columns."""

    columns: tuple[str, ...]
    """The columns that a table must have to be read so."""
    read: Callable[[Row], Parts]
    """The adapter. Raises BadRow."""


def prepared(row: Row) -> Parts:
    """A row that `python -m experiments.prepare_problems` has written."""
    split = row["split"]
    if split not in ("train", "validation"):
        raise BadRow(f"split is {split!r}: it is train or validation")
    return Parts(_text(row, "name"), _level(row["level"]), _text(row, "reference"), str(row.get("prompt") or ""), split)


def kernelbench(row: Row) -> Parts:
    """A row of KernelBench's own data set."""
    level = _level(row["level"])
    return Parts(f"level{level}/{_text(row, 'name').removesuffix('.py')}", level, _text(row, "code"))


def drkernel(row: Row) -> Parts:
    """A row of Dr. Kernel's data for training or validation (arXiv 2602.05885)."""
    model, extra = _struct(row, "reward_model"), _struct(row, "extra_info")
    source, origin = _text(model, "ground_truth"), _text(row, "data_source")
    level = _level(extra.get("level")) or _level(re.search(r"level_?\d+", origin))
    stem = str(extra.get("module_name") or extra.get("name") or extra.get("entry_point") or "problem")
    own = str(extra.get("uuid") if extra.get("uuid") is not None else extra.get("problem_id", ""))[:8]
    name = f"{origin}/{stem}-{own}" if own and own != "None" else f"{origin}/{stem}"
    return Parts(name, level, _as_model(source, extra.get("entry_point")), user_text(row["prompt"]))


def kernelbook(row: Row) -> Parts:
    """A row of KernelBook: a module of any name. `rlkernel.reference` reads its `get_init_inputs`, which gives `[[args],
    {keywords}]`."""
    entry_point = _text(row, "entry_point")
    own = str(row.get("uuid") if row.get("uuid") is not None else "")[:8]
    return Parts(f"kernelbook/{entry_point}-{own}".rstrip("-"), 0, _as_model(_text(row, "python_code"), entry_point))


SCHEMAS: Mapping[str, Schema] = {
    "prepared": Schema(("name", "level", "split", "reference", "prepared"), prepared),
    "drkernel": Schema(("data_source", "prompt", "reward_model", "extra_info"), drkernel),
    "kernelbook": Schema(("python_code", "entry_point"), kernelbook),
    "kernelbench": Schema(("code", "level", "name", "problem_id"), kernelbench),
}
"""Name of a schema -> its columns and adapter. The first whose columns a row has is taken."""

GIVEN = ("reference", "name", "level", "prompt", "entry_point")
"""What `--column` can say of a table that no schema knows; only `reference` must be said."""


def by_columns(columns: Mapping[str, str]) -> Schema:
    """A table whose columns are named by hand: part -> column."""

    def read(row: Row) -> Parts:
        entry_point = row[columns["entry_point"]] if "entry_point" in columns else None
        source = _as_model(_text(row, columns["reference"]), entry_point)
        name = _name(row, columns["name"]) if "name" in columns else "row"
        level = _level(row[columns["level"]]) if "level" in columns else 0
        return Parts(name, level, source, user_text(row[columns["prompt"]]) if "prompt" in columns else "")

    return Schema(tuple(columns.values()), read)


def schema_of(row: Row) -> Schema | None:
    """The schema of a row's columns; None where no schema has them."""
    return next((schema for schema in SCHEMAS.values() if all(column in row for column in schema.columns)), None)


def user_text(prompt: Any) -> str:
    """The user's text of a chat prompt, unchanged. A system turn's text goes before it, since a policy is given one text.

    Raises BadRow for a prompt that is no system turn, or none, and one user turn.
    """
    if isinstance(prompt, str):
        return prompt
    try:
        turns = [(str(turn["role"]), str(turn["content"])) for turn in prompt]
    except (TypeError, KeyError):
        raise BadRow("prompt is no list of messages with role and content") from None
    roles = [role for role, _ in turns]
    if roles not in (["user"], ["system", "user"]):
        raise BadRow(f"prompt has the turns {', '.join(roles) or 'none'}: expected user, or system and user")
    return "\n\n".join(text for _, text in turns if text)


def _text(row: Row, column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str) or not value.strip():
        raise BadRow(f"{column} is {'missing' if value is None else 'no text'}")
    return value


def _name(row: Row, column: str) -> str:
    """A name, which may be a number in the table."""
    value = row.get(column)
    return str(value) if isinstance(value, int) else _text(row, column)


def _struct(row: Row, column: str) -> Row:
    """An object of the row, also where the table holds it as JSON text."""
    value = row.get(column)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    if not isinstance(value, Mapping):
        raise BadRow(f"{column} is no object")
    return value


def _level(value: Any) -> int:
    """The first number in a level, e.g. of 2, "level_2" or a match; 0 where there is none."""
    text = value[0] if isinstance(value, re.Match) else str(value)
    found = re.search(r"\d+", text)
    return int(found[0]) if found and value is not None else 0


def _as_model(source: str, entry_point: Any) -> str:
    if not isinstance(entry_point, str) or not entry_point:
        return source
    try:
        return as_model(source, entry_point)
    except ValueError as error:
        raise BadRow(str(error)) from None
