"""What studies have found, kept in a file, so that the next process need not study the same problems again.

Studies of 114 problems took a card for 8 s, of 13 s in which 240 candidates were judged, and a training run meets hundreds of
problems. What is kept holds for equal cards and processors, and for the code that found it alone: its key has the evaluator's own
hash (`version.verdict_version`), and with it torch's version and triton's.
"""

from __future__ import annotations

import functools
import platform
from pathlib import Path
from typing import Any

from rlkernel.evaluator.cards.baselines import source_hash
from rlkernel.evaluator.cards.gpus import Gpu
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.gpu import Known
from rlkernel.evaluator.program.values import MalformedProgram
from rlkernel.evaluator.shared_rows import SharedRows
from rlkernel.evaluator.version import verdict_version
from rlkernel.evaluator.wire import BadMessage
from rlkernel.types import Precision, Problem

Key = tuple[str, ...]


class KeptStudies:
    """Studies in memory, and in the file `path` if one is given; also those that another process adds meanwhile. `precision`: the
    one that all of them had."""

    def __init__(self, path: Path | None, *, precision: Precision) -> None:
        self._rows = SharedRows(path)
        self._precision = precision
        self._known: dict[Key, Known] = {}
        self._unread: dict[Key, Any] = {}
        """What the file has of problems that nobody has asked for yet, as it stands there."""

    def get(self, gpu: Gpu, problem: Problem) -> Known | None:
        """What is known of a problem on cards like this one; None before it was studied."""
        key = self._key(gpu, problem)
        if key not in self._known:
            self._read_on()
            if (known := _decoded(self._unread.pop(key, None))) is not None:
                self._known[key] = known
        return self._known.get(key)

    def put(self, gpu: Gpu, problem: Problem, known: Known, *, lasting: bool) -> None:
        """Keep a study. lasting: in the file, too; one that lacks rounds, because they cost a card's runner or there was no
        time for them, holds for this process alone."""
        key = self._key(gpu, problem)
        self._known[key] = known
        if lasting:
            self._rows.append({"problem": problem.name, "key": key, "known": codec.to_header(known)})

    def _read_on(self) -> None:
        """Take what was added to the file since, as far as it may be asked for: the file has all codes' studies."""
        ours = self._ours()
        for row in self._rows.unread():
            key = _key_of(row)
            if key is not None and key[-len(ours) :] == ours and key not in self._known:
                self._unread[key] = row.get("known")

    def _key(self, gpu: Gpu, problem: Problem) -> Key:
        """All that what is known depends on: the problem, the kind of card and of host, and our own code."""
        return (source_hash(problem), gpu.name, str(gpu.memory_bytes), gpu.driver, *self._ours())

    def _ours(self) -> Key:
        """The part of all keys that is the same in this process."""
        return host(), str(self._precision), verdict_version()


@functools.cache
def host() -> str:
    """The model of this machine's processor: how long it draws and enqueues is known of a problem, too."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _key_of(row: dict[str, Any]) -> Key | None:
    key = row.get("key")
    return tuple(map(str, key)) if isinstance(key, list) and key else None


def _decoded(header: Any) -> Known | None:
    """What a row holds; None for a damaged one."""
    try:
        return codec.unpack(header, Known) if isinstance(header, dict) else None
    except (KeyError, TypeError, BadMessage, MalformedProgram):
        return None
