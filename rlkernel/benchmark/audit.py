"""Runs a sample of a benchmark's accepted candidates as plain Python, and keeps what that shows in audit.jsonl.

The sample depends on the accepted turns and on the seed alone, so that the same command goes on where it stopped.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio

from rlkernel.benchmark.trajectories import Ledger, TurnRow
from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.messages.native import NativeFound
from rlkernel.evaluator.native.agreement import Judged, native_from_json, native_to_json, summary
from rlkernel.types import Problem

AUDIT = "audit.jsonl"
Run = Callable[[Problem, str], Awaitable[NativeFound]]
"""Runs a candidate as plain Python. Raises BrokenReference or EvaluatorFailed."""


def name_of(row: TurnRow) -> str:
    """A turn's name in the audit, e.g. `level1/relu trajectory 1 turn 2`."""
    return f"{row.problem} trajectory {row.sample + 1} turn {row.turn + 1}"


def sample(ledger: Ledger, count: int, seed: int) -> list[TurnRow]:
    """At most `count` accepted turns, drawn without replacement; those that were themselves judged natively are left out."""
    accepted = [row for row in ledger.rows if row.evaluation is not None and row.evaluation.correct]
    traced = sorted((row for row in accepted if row.evaluation and row.evaluation.trust == "traced"), key=name_of)
    return random.Random(seed).sample(traced, min(count, len(traced)))


def known(directory: Path) -> dict[str, NativeFound]:
    """The native runs that were kept, by the names of their turns. A torn last row is left out."""
    path = directory / AUDIT
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return {row["turn"]: native_from_json(row["native"]) for row in rows}


async def audit(directory: Path, ledger: Ledger, problems: Mapping[str, Problem], run: Run, count: int, seed: int) -> None:
    """Run what the sample lacks, all of it at once; the evaluator lets one at a time onto a card. What our own side fails at is
    told on standard error, and is left to the next start."""
    done = known(directory)
    path = directory / AUDIT
    if path.exists():
        whole = path.read_bytes()
        path.write_bytes(whole[: whole.rfind(b"\n") + 1])

    async def one(row: TurnRow) -> None:
        assert row.code is not None
        try:
            found = await run(problems[row.problem], row.code)
        except (BrokenReference, EvaluatorFailed) as error:
            print(f"not run natively: {name_of(row)}: {error}", file=sys.stderr, flush=True)
            return
        with path.open("ab", buffering=0) as file:
            file.write(json.dumps({"turn": name_of(row), "native": native_to_json(found)}).encode() + b"\n")

    async with anyio.create_task_group() as tasks:
        for row in sample(ledger, count, seed):
            if name_of(row) not in done:
                tasks.start_soon(one, row)


def results(directory: Path, ledger: Ledger) -> dict[str, Any] | None:
    """The audit's part of results.json; None without an audit."""
    found = known(directory)
    judged = [
        Judged(name_of(row), row.evaluation, found[name_of(row)])
        for row in ledger.rows
        if row.evaluation is not None and name_of(row) in found
    ]
    return summary(judged) if judged else None
