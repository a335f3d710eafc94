"""Rows of JSON in one file that several processes append to at the same time: what they keep of each other's work."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


class SharedRows:
    """A file of one JSON object a line; without a path, no row is kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._read = 0
        """Bytes of the file that are known."""

    def unread(self) -> list[dict[str, Any]]:
        """The rows that were added since the last call, by whomever. A torn or damaged line is skipped, and one that is still
        being written is read when it is whole."""
        if self._path is None:
            return []
        try:
            with self._path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self._read:  # another file
                    self._read = 0
                file.seek(self._read)
                lines = file.read()
        except FileNotFoundError:  # nobody has appended yet
            return []
        whole = lines[: lines.rfind(b"\n") + 1]
        self._read += len(whole)
        rows = list[dict[str, Any]]()
        for line in whole.splitlines():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                continue
            rows += [row] if isinstance(row, dict) else []
        return rows

    def append(self, row: dict[str, Any]) -> None:
        """Add a row in one write, so that lines of several processes do not mix."""
        if self._path is None:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(row) + "\n"
        with self._path.open("a+b", buffering=0) as file:
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":  # somebody was killed inside a line, or the disk was full
                    line = "\n" + line
            file.write(line.encode())
