"""Evaluations per second on distinct, cold, honest candidates over the whole suite, and where their time goes.

    python -m benchmarks.evaluator_throughput [--count 320] [--jobs 0] [--device auto] [--timing-width 0.05] [--out FILE.json]
    python -m benchmarks.evaluator_throughput --cache DIR --seed 0, and again with --seed 1

No verdict is cached: every candidate is another text, traced, compiled, run, judged and timed anew in a pool that was just opened
and has seen three others. With `--cache` the second seed finds what the first one has measured of references. All candidates are
honest: a verdict other than `correct` is listed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from benchmarks.corpus import corpus
from benchmarks.drive import WIDTH, Done, about, described, drive, percentile, summary, table, write
from benchmarks.usage import Usage
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.pool import open_pool
from rlkernel.types import TIMING_WIDTH

WARM_UP = 3
STAGES = ("trace", "compile", "run", "gpu", "total")
FAST_US = 1000.0
"""Candidates below this time have a goal of their own for the GPU slot."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run of the benchmark saw."""

    machine: dict[str, Any]
    opened_s: float
    wall_s: float
    load: dict[str, float]
    rows: tuple[Done, ...]


async def measure(count: int, jobs: int, device: str, seed: int, timing_width: float, cache: Path | None) -> Measured:
    """Open, warm up, then time `count` candidates from the first question to the last verdict."""
    cases = corpus(count + WARM_UP, seed)
    start = time.perf_counter()
    config = EvaluatorConfig(timing_width=timing_width)
    async with open_pool(device=device, jobs=jobs, cache_dir=cache, config=config) as pool:
        opened = time.perf_counter() - start
        await drive(pool, cases[count:], "warming up")
        machine = about(pool, {"count": count, "jobs": jobs, "device": device, "seed": seed, "timing_width": timing_width})
        before = Usage.now()
        rows = await drive(pool, cases[:count], "evaluating")
        after = Usage.now()
        return Measured(machine, opened, after.wall - before.wall, after.since(before, machine["cores"]), tuple(rows))


def figures(found: Measured) -> dict[str, Any]:
    """The summary of the result file. Times are in seconds."""
    rows, gpus = found.rows, len(found.machine["gpus"])
    slots = [row.seconds.gpu for row in rows if row.seconds.gpu > 0]
    fast = [
        row.seconds.gpu
        for row in rows
        if row.result and row.result.candidate_us is not None and row.result.candidate_us < FAST_US
    ]
    capacity = len(slots) / sum(slots) if slots else None
    return {
        "per_second": len(rows) / found.wall_s,
        "statuses": dict(Counter(row.status for row in rows)),
        "stages": {stage: summary([getattr(row.seconds, stage) for row in rows]) for stage in STAGES},
        "gpu_slot": summary(slots),
        "gpu_slot_under_1ms": summary(fast if slots else []),
        "gpu_capacity_per_second_of_one": capacity,
        "gpu_capacity_per_second": None if capacity is None else capacity * gpus,
        "gpu_share_of_wall": sum(slots) / (found.wall_s * gpus) if slots else None,
        "problems": len({row.case.problem.name for row in rows}),
    }


def report(found: Measured, summed: dict[str, Any], console: Console) -> None:
    console.print(described(found.machine))
    cpu = f"CPU {100 * found.load['share']:.0f} % of all cores, event loop {100 * found.load['parent']:.0f} % of one"
    console.print(f"{len(found.rows)} candidates of {summed['problems']} problems; pool opened in {found.opened_s:.1f} s; {cpu}")
    line = f"{summed['per_second']:.1f} evaluations/s end to end ({found.wall_s:.1f} s)"
    if summed["gpu_capacity_per_second"] is not None:
        line += f"; GPU side {summed['gpu_capacity_per_second']:.0f}/s, busy {100 * summed['gpu_share_of_wall']:.0f} %"
    console.print(line, style="bold")
    times = table("Milliseconds per evaluation", "stage", "median", "p95", "max")
    parts = {**summed["stages"], "gpu, candidates < 1 ms": summed["gpu_slot_under_1ms"]}
    for stage, values in parts.items():
        times.add_row(stage, *(f"{1000 * values[name]:.1f}" for name in ("median", "p95", "max")))
    console.print(times)
    slowest = table("Slowest", "candidate", "gpu ms", "trace ms", "compile ms", "total ms", "us", "reference us")
    order = sorted(found.rows, key=lambda row: row.seconds.gpu or row.seconds.total, reverse=True)
    for row in order[: min(8, len(order))]:
        us = [getattr(row.result, name, None) for name in ("candidate_us", "reference_us")]
        spent = (f"{1000 * getattr(row.seconds, stage):.0f}" for stage in ("gpu", "trace", "compile", "total"))
        slowest.add_row(row.case.name, *spent, *("-" if value is None else f"{value:.1f}" for value in us))
    console.print(slowest)


def offenders(rows: Sequence[Done], console: Console) -> int:
    """List the honest candidates that were not correct. Returns how many."""
    wrong = [row for row in rows if row.status != "correct"]
    if wrong:
        listed = table("Honest candidates that were not correct", "candidate", "status", "detail", left=3)
        for row in wrong:
            listed.add_row(row.case.name, row.status, row.detail)
        console.print(listed)
    return len(wrong)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=320, help="distinct candidates")
    parser.add_argument("--jobs", type=int, default=0, help="evaluations in flight; 0: the pool's default")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--seed", type=int, default=0, help="of the corpus")
    parser.add_argument("--timing-width", type=float, default=TIMING_WIDTH, help="see EvaluatorConfig.timing_width")
    parser.add_argument("--cache", type=Path, help="directory that keeps what is measured of references for the next seed")
    parser.add_argument("--out", type=Path, help="result file, JSON")
    args = parser.parse_args(argv)
    console = Console(width=WIDTH)
    try:
        found = anyio.run(measure, args.count, args.jobs, args.device, args.seed, args.timing_width, args.cache)
    except ValueError as error:  # a device that is not there, a count that is too large
        parser.error(str(error))
    summed = figures(found)
    report(found, summed, console)
    wrong = offenders(found.rows, console)
    rows = [row.to_json() for row in sorted(found.rows, key=lambda row: row.ended)]
    about_run = {"machine": found.machine, "opened_s": found.opened_s, "wall_s": found.wall_s, "cpu": found.load}
    write(args.out, {"benchmark": "evaluator_throughput", **about_run, **summed, "rows": rows})
    median_us = percentile([row.result.candidate_us for row in found.rows if row.result and row.result.candidate_us], 50)
    console.print(f"statuses {summed['statuses']}; median candidate {median_us:.0f} us")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
