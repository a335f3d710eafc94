"""Results of earlier evaluations, by everything that a result depends on. One JSON line each, appended; safe to share, also
between processes at the same time, and to lose."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from rlkernel.evaluator.shared_rows import SharedRows
from rlkernel.evaluator.version import verdict_version
from rlkernel.types import Evaluation, Problem, Status

NOT_KEPT = frozenset({Status.TIMEOUT, Status.CRASH})
"""These may be the machine's fault rather than the candidate's: they hold for this process and are not written to the file."""


def key(problem: Problem, code: str, device: str, setting: str) -> str:
    """A digest of everything that a verdict depends on. The code counts character by character: blanks stand in string literals,
    line breaks that Python does not count stand in comments, and details name lines."""
    parts = [problem.source, code, device, setting, verdict_version()]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class ResultCache:
    """In memory, and in `directory/results.jsonl` if a directory is given. A torn last line is skipped."""

    def __init__(self, directory: Path | None) -> None:
        self._results: dict[str, Evaluation] = {}
        self._rows = SharedRows(directory / "results.jsonl" if directory is not None else None)
        self._read_on()

    def __len__(self) -> int:
        return len(self._results)

    def get(self, name: str) -> Evaluation | None:
        """Also what another process has found meanwhile."""
        if name not in self._results:
            self._read_on()
        found = self._results.get(name)
        return None if found is None else replace(found, cached=True)

    def put(self, name: str, result: Evaluation) -> None:
        self._results[name] = result
        if result.status not in NOT_KEPT:
            self._rows.append({"key": name, "result": result.to_json()})

    def _read_on(self) -> None:
        """Whole lines that were added since."""
        for row in self._rows.unread():
            try:
                self._results.setdefault(row["key"], Evaluation.from_json(row["result"]))
            except (ValueError, KeyError, TypeError):
                continue
