"""Texts of a run: its files of JSON lines, what an answer consists of, and how long texts are cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlkernel.errors import UsageError

TEXT_LIMITS = (20_000, 6_000, 2_000, 600, 200)
"""Characters of one text: the first with which all fits is taken; if none does, every second trajectory is left out."""


def jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines, one by one. Raises UsageError naming file and line."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise UsageError(f"{path}, line {number}: not JSON: {error}; resume the run to mend it") from None
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file; give the directory of a run") from None


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
