"""Texts of a run: its files of JSON lines, what an answer consists of, and how long texts are cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlkernel.errors import UsageError

TEXT_LIMITS = (20_000, 6_000, 2_000, 600, 200)
"""Characters of one text: the first with which all fits is taken; if none does, every second trajectory is left out."""


MENDED = "the run's own command mends it, unless the run is finished: then copy the file again, or delete the run"
"""What to do about a file of rows that lacks some."""


def jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, one by one. Raises UsageError naming file and line."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise _torn(path, number, error) from None
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; give the directory of a run") from None


def _torn(path: Path, number: int, error: ValueError) -> UsageError:
    return UsageError(f"{path}, line {number}: not JSON: {error}; {MENDED}")


@dataclass
class Steps:
    """Finds the rows of one step in a file of JSON lines that grows at its end: each line is read once, and remembered by its
    place."""

    path: Path
    _places: dict[tuple[str, int], list[tuple[int, int]]] = field(default_factory=dict)
    """Split and step -> the lines' numbers, from 1, and their first bytes."""
    _lines: int = 0
    _end: int = 0

    def rows(self, split: str, step: int) -> dict[int, dict[str, Any]]:
        """Number of the line -> its row. Raises UsageError naming file and line."""
        if not self.path.exists():
            return {}
        with self.path.open("rb") as file:
            file.seek(self._end)
            for line in file:
                self._lines += 1
                row = self._row(line, self._lines)
                self._places.setdefault((row["split"], row["step"]), []).append((self._lines, self._end))
                self._end += len(line)
            found = {}
            for number, start in self._places.get((split, step), ()):
                file.seek(start)
                found[number] = self._row(file.readline(), number)
        return found

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            row: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise _torn(self.path, number, error) from None
        return row


def cut(text: str, limit: int) -> str:
    """The first `limit` characters of a text, with a remark on how many were left out.

    >>> cut("abcdef", 4)
    'abcd\\n[2 more characters]'
    """
    return text if len(text) <= limit else f"{text[:limit]}\n[{len(text) - limit} more characters]"


def answer_parts(completion: str, code: str | None) -> tuple[str, str | None, str]:
    """What stands before the code, the code, and what stands after it; fences belong to neither.

    >>> answer_parts("fuse it\\n```python\\nx = 1\\n```\\nDone.", "x = 1\\n")
    ('fuse it', 'x = 1\\n', 'Done.')
    >>> answer_parts("I cannot.", None)
    ('I cannot.', None, '')
    """
    if code is None:
        return completion.strip(), None, ""
    before, found, after = completion.rpartition(code.strip()) if code.strip() else ("", "", "")
    if not found:
        return completion.split("```")[0].strip(), code, ""
    plan, fence, info = before.rpartition("```")
    before = plan if fence and "\n" not in info.strip() else before
    return before.strip(), code, after.strip().removeprefix("```").strip()
