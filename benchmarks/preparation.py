"""How many references are prepared per second: a made-up table through `experiments.prepare_problems`.

    python -m benchmarks.preparation --rows 3000 --limit-seconds 540 --out FILE.json

The rows have the columns of Dr. Kernel's training data. Seven of ten references are as small as KernelBook's (some microseconds),
and three are elementwise chains on millions of elements, for which preparation has to find a smaller size. A table that is begun
and not finished is measured by what was done.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.drive import write
from benchmarks.tasks import disguised, plain, tasks
from envs.chains import generate
from experiments.preparation.looked import Ledger, look_at
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.runs import directory as rundir
from rlkernel.sources.load import load
from rlkernel.types import Problem

PUBLISHED = 71_996
"""The rows of Dr. Kernel's training data."""


def rows(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """`count` different rows, small and large references mixed."""
    small = round(0.7 * count)
    found: list[Problem] = [(plain if k % 2 else disguised)(task) for k, task in enumerate(tasks(small, seed))]
    # Published tables have no SMALL.
    large = [re.sub(r"^SMALL = .*\n", "", problem.source, flags=re.MULTILINE) for problem in generate(count - small, seed=seed)]
    sources = [*(problem.source for problem in found), *large]
    random.Random(seed).shuffle(sources)
    return [_row(k, source) for k, source in enumerate(sources)]


def _row(k: int, source: str) -> dict[str, Any]:
    return {
        "data_source": "made",
        "prompt": [{"role": "user", "content": f"Write a Triton kernel for this module.\n```python\n{source}```\n"}],
        "reward_model": {"ground_truth": source, "style": "rule"},
        "extra_info": {"entry_point": "Model", "module_name": "Made", "uuid": f"{k:08d}"},
    }


@dataclass
class Measured:
    """What was done in which time."""

    done: int = 0
    broken: int = 0
    checked: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0


def measure(problems: tuple[Problem, ...], jobs: int, limit: float) -> Measured:
    """Look at problems until all are done, or for `limit` seconds."""
    found = Measured()

    def count(survey: Any) -> None:
        found.done += 1
        found.broken += bool(survey.broken)
        found.checked += survey.checked

    async def work(directory: str) -> None:
        with anyio.move_on_after(limit):
            await look_at(problems, Ledger(Path(directory) / "found.jsonl", EvaluatorConfig()), EvaluatorConfig(), jobs, count)

    with tempfile.TemporaryDirectory() as directory:
        started, before = time.monotonic(), _cpu_seconds()
        anyio.run(work, directory)
        found.seconds, found.cpu_seconds = time.monotonic() - started, _cpu_seconds() - before
    return found


def _cpu_seconds() -> float:
    """The CPU seconds of this process and of all its children that have ended."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--jobs", type=int, default=0, help="references at a time; 0: one per core")
    parser.add_argument("--limit-seconds", type=float, default=540.0)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "made.parquet"
        pq.write_table(pa.Table.from_pylist(rows(given.rows)), path)
        started = time.monotonic()
        problems = load(str(path)).problems
        loading = time.monotonic() - started
    found = measure(problems, given.jobs, given.limit_seconds)
    done = max(found.done, 1)
    figures = {
        "rows": len(problems),
        "done": found.done,
        "broken": found.broken,
        "checked": found.checked,
        "loading_seconds": loading,
        "seconds": found.seconds,
        "rows_per_second": found.done / found.seconds,
        "cpu_seconds_per_row": found.cpu_seconds / done,
        "minutes_for_all": PUBLISHED / (found.done / found.seconds) / 60 if found.done else None,
    }
    print(json.dumps(figures, indent=1))
    write(given.out, {**figures, "machine": rundir.provenance()})


if __name__ == "__main__":
    main()
