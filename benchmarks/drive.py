"""Drive candidates through an open pool, all at once, with a progress bar; and describe the machine in every result file."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from benchmarks.corpus import Case
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Evaluation, Seconds

WIDTH = 100
"""The width of every printed table in characters."""


@dataclass(frozen=True, slots=True)
class Done:
    """One candidate and its verdict."""

    case: Case
    result: Evaluation | None
    """The verdict, or None where the evaluator itself failed."""
    failure: str
    ended: float
    """When the verdict was there, in seconds of `time.perf_counter`."""

    @property
    def status(self) -> str:
        return "evaluator_failed" if self.result is None else str(self.result.status)

    @property
    def detail(self) -> str:
        return self.failure if self.result is None else self.result.detail

    @property
    def seconds(self) -> Seconds:
        return Seconds() if self.result is None else self.result.seconds

    def to_json(self) -> dict[str, Any]:
        """One row of a result file: what varies between evaluations, without the facts about single launches."""
        row: dict[str, Any] = {"name": self.case.name, "status": self.status, "detail": self.detail, "ended_s": self.ended}
        if self.result is not None:
            names = ("speedup", "speedup_low", "speedup_high", "reference_us", "candidate_us", "timing", "trials", "host_us")
            row |= {name: getattr(self.result, name) for name in (*names, "coverage", "max_error")}
            row["seconds"] = asdict(self.result.seconds)
        return row


@contextmanager
def bar(label: str, total: int) -> Iterator[Any]:
    """A progress bar on standard error; yields what advances it by one."""
    columns = (TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=total)
        yield lambda: progress.advance(task)


async def drive(pool: Pool, cases: Sequence[Case], label: str) -> list[Done]:
    """Evaluate all candidates, as many at a time as the pool has lanes. Returns them in the order in which they ended."""
    found: list[Done] = []
    with bar(label, len(cases)) as advance:

        async def one(case: Case) -> None:
            result, failure = None, ""
            try:
                result = await pool.evaluate(case.problem, case.code)
            except (RuntimeError, ValueError) as error:  # our failure or a broken reference: a row that says so
                failure = f"{type(error).__name__}: {error}"
            found.append(Done(case, result, failure, time.perf_counter()))
            advance()

        async with anyio.create_task_group() as tasks:
            for case in cases:
                tasks.start_soon(one, case)
    return found


def percentile(values: Sequence[float], percent: float) -> float:
    """The q-th percentile, linear between the sorted values; 0 where there are none.

    >>> percentile([1.0, 3.0, 2.0], 75)
    2.5
    """
    return float(np.percentile(values, percent)) if values else 0.0


def summary(values: Sequence[float]) -> dict[str, float]:
    """The count, median, 95th percentile and maximum of the values."""
    return {
        "count": len(values),
        "median": percentile(values, 50),
        "p95": percentile(values, 95),
        "max": max(values, default=0.0),
    }


def cards(pool: Pool) -> tuple[gpus.Gpu, ...]:
    return tuple(runner.gpu for runner in pool.runners)


def about(pool: Pool, settings: dict[str, Any]) -> dict[str, Any]:
    """Where, when and with what the figures were measured."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent)
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"), "commit": commit.stdout.strip() or "unknown",
        "python": platform.python_version(), "torch": version("torch"), "triton": version("triton"),
        "machine": platform.machine(), "cores": len(os.sched_getaffinity(0)), "jobs": pool.jobs,
        "gpus": [{**asdict(gpu), "state": asdict(gpus.read(gpu))} for gpu in cards(pool)], "settings": settings,
    }  # fmt: skip


def described(machine: dict[str, Any]) -> str:
    """`about` in one line."""
    names = [gpu["name"] for gpu in machine["gpus"]]
    where = f"{len(names)} x {names[0]}" if names else "no GPU (modelled time)"
    return f"{where}, {machine['cores']} cores, {machine['jobs']} jobs, torch {machine['torch']}, triton {machine['triton']}"


def table(title: str, *columns: str, left: int = 1) -> Table:
    """Print a table whose first `left` columns are text and whose others are numbers."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if index < left else "right", overflow="fold")
    return made


def write(path: Path | None, data: dict[str, Any]) -> None:
    """Write the result file, if one is asked for."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=1) + "\n")
        Console(stderr=True).print(f"written: {path}")
