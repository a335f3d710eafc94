"""Sizes that were chosen before, kept in a file: counting what a large model needs takes seconds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.judging.sizes.fitting import Fitted, Unfit, fit_for_cpu, fit_for_gpu
from rlkernel.evaluator.version import verdict_version
from rlkernel.types import Problem


def _nothing() -> None:
    """The callback of callers who do not watch the progress."""


def fit_all(
    problems: Sequence[Problem],
    profile: DeviceProfile,
    memory_bytes: int | None,
    store: Path,
    on_done: Callable[[], None] = _nothing,
) -> list[Fitted | Unfit]:
    """Fit all problems: for a GPU with `memory_bytes`, or for the CPU where that is None.

    store: a file of JSON lines to which sizes are appended. What another version of the evaluator or of torch has found is
    not used.
    """
    rule = [verdict_version(), profile.name, memory_bytes]
    known = _read(store)
    found: list[Fitted | Unfit] = []
    for problem in problems:
        key = hashlib.sha256(json.dumps([*rule, problem.name, problem.source]).encode()).hexdigest()[:32]
        if key not in known:
            fitted = fit_for_cpu(problem, profile) if memory_bytes is None else fit_for_gpu(problem, profile, memory_bytes)
            known[key] = {"key": key, **_dump(fitted)}
            store.parent.mkdir(parents=True, exist_ok=True)
            with store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[key]) + "\n")
        row = known[key]
        if "reason" in row:
            found.append(Unfit(problem, row["reason"]))
        else:
            found.append(Fitted(replace(problem, source=row["source"]), row["whole"], row["compared"]))
        on_done()
    return found


def _dump(fitted: Fitted | Unfit) -> dict[str, Any]:
    if isinstance(fitted, Unfit):
        return {"reason": fitted.reason}
    # Sizes as JSON has them, so that they are shown alike when they are read again.
    sizes: dict[str, Any] = json.loads(json.dumps({"whole": fitted.whole, "compared": fitted.compared}))
    return {"source": fitted.problem.source, **sizes}


def _read(store: Path) -> dict[str, dict[str, Any]]:
    known: dict[str, dict[str, Any]] = {}
    for line in store.read_text(encoding="utf-8").splitlines() if store.exists() else ():
        with suppress(ValueError, KeyError, TypeError):  # a line torn by a kill is found again
            row = json.loads(line)
            known[row["key"]] = row
    return known
