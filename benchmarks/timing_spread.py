"""Measure how far a repeated speedup strays: the same candidates are evaluated again and again, in several openings of the pool.

    python -m benchmarks.timing_spread [--candidates 24] [--openings 5] [--repeats 4] [--load both] [--device auto] [--out F.json]

Each opening starts new processes, GPU runners included. A comment makes every repetition another candidate, so that no result is
answered from memory; a GPU measures all of them. With `--load busy` (or `both`) every core also runs a busy loop. Spread of a
candidate: the 95th over the 5th percentile of its speedups. The goals are at most 1.02 where the reference takes 20 us or more,
and at most 1.05 below.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from benchmarks.corpus import Case, cases
from benchmarks.drive import WIDTH, Done, about, described, drive, percentile, table, write
from envs.problems import load_suite
from rlkernel.evaluator.pool import open_pool
from rlkernel.types import Evaluation, Problem

SHORT_US = 20.0
LONG, SHORT = "reference >= 20 us", "reference < 20 us"
BARS = {LONG: 1.02, SHORT: 1.05}
SMALL: tuple[tuple[str, dict[str, int]], ...] = (
    ("level2/chain_bias_relu", {"ROWS": 128, "COLS": 1024}),
    ("level1/gelu", {"ROWS": 256, "COLS": 1024}),
    ("level1/softmax", {"ROWS": 512, "COLS": 1024}),
    ("level1/layer_norm", {"ROWS": 512, "COLS": 1024}),
    ("level1/row_sum", {"ROWS": 1024, "COLS": 1024}),
    ("level1/column_sum", {"ROWS": 512, "COLS": 1024}),
    ("level1/matmul", {"M": 256, "N": 256, "K": 256}),
    ("level2/scaled_masked_softmax", {"ROWS": 256, "COLS": 1024}),
    ("level1/rms_norm", {"ROWS": 256, "COLS": 1024}),
    ("level3/rotary_pair", {"BATCH": 2, "LENGTH": 128, "HALF": 64}),
)
"""Problems of the suite, made so small that their references take a few microseconds."""
LARGE: tuple[tuple[str, dict[str, int]], ...] = (
    ("level1/embedding", {}),
    ("level1/softmax", {}),
    ("level2/chain_bias_gelu_scale", {}),
    ("level1/cross_entropy", {}),
    ("level1/transpose", {}),
    ("level1/group_norm", {}),
    ("level1/batched_matmul", {}),
    ("level1/conv2d", {}),
    ("level3/attention_head", {}),
    ("level3/causal_attention", {}),
    ("level3/gated_mlp", {}),
    ("level3/squeeze_excite", {}),
    ("level2/chain_bias_gelu_scale", {"ROWS": 16384, "COLS": 16384}),
    ("level2/matmul_scale_gelu", {"M": 4096, "N": 4096, "K": 4096}),
)
"""Problems of the suite at sizes at which their references take tens of microseconds to milliseconds."""
KIND = {"level2/matmul_scale_gelu": "flat"}
"""Which of the corpus's variants, where not the first: the library's product with a fused epilogue."""


def resized(problem: Problem, sizes: dict[str, int]) -> Problem:
    """The problem with other constants at the top of its file."""
    source = problem.source
    for name, value in sizes.items():
        source, found = re.subn(rf"^{name} = \d+$", f"{name} = {value}", source, flags=re.MULTILINE)
        if not found:
            raise ValueError(f"{problem.name} has no constant {name}")
    return replace(problem, source=source)


def chosen(count: int) -> tuple[Case, ...]:
    """Candidates on small and large problems alternately, at most all of them: one of each plan's plain variants."""
    problems = {problem.name: problem for problem in load_suite()}
    turns = [pair for group in zip(SMALL, LARGE, strict=False) for pair in group]
    turns += [*LARGE[len(SMALL) :], *SMALL[len(LARGE) :]]
    found = []
    for name, sizes in turns[:count]:
        plain = next(case for case in cases(resized(problems[name], sizes)) if KIND.get(name, "") in case.name)
        what = " ".join(f"{key}={value}" for key, value in sizes.items())
        found.append(replace(plain, name=f"{name} {what}".strip()))
    return tuple(found)


@contextmanager
def busy_cores(count: int) -> Iterator[None]:
    """`count` processes that do nothing but compute; they end with this block, or with this process."""
    loop = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(1_000_000): pass"
    processes = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


async def measure(
    sample: Sequence[Case], args: argparse.Namespace, load: str, first: int
) -> tuple[dict[str, Any], list[list[Done]]]:
    """Returns the machine and one list of verdicts per opening. `first` numbers the repetitions, so that no text appears
    twice."""
    machine: dict[str, Any] = {}
    found = []
    for opening in range(args.openings):
        async with open_pool(device=args.device, jobs=args.jobs) as pool:
            machine = machine or about(pool, {k: str(v) if isinstance(v, Path) else v for k, v in vars(args).items()})
            numbers = range(first + opening * args.repeats, first + (opening + 1) * args.repeats)
            again = [replace(case, code=f"{case.code}\n# repetition {number}\n") for number in numbers for case in sample]
            found.append(await drive(pool, again, f"{load}, opening {opening + 1} of {args.openings}"))
    return machine, found


def spreads(sample: Sequence[Case], openings: Sequence[Sequence[Done]], load: str) -> list[dict[str, Any]]:
    """One row per candidate: its speedups over all openings, and how far they stray."""
    rows = []
    for case in sample:
        mine = [[done for done in opening if done.case.name == case.name] for opening in openings]
        every = [done for opening in mine for done in opening]
        row: dict[str, Any] = {
            "name": case.name, "load": load, "statuses": sorted({done.status for done in every}),
            "details": sorted({done.detail for done in every if done.detail}),
            "speedups": [[done.result.speedup for done in opening if done.result] for opening in mine],
        }  # fmt: skip
        timed = [done.result for done in every if done.result is not None and done.result.speedup is not None]
        rows.append(row | (_times(timed) if timed else {}))
    return rows


def _times(timed: Sequence[Evaluation]) -> dict[str, Any]:
    """The medians and the spread of one candidate's evaluations."""

    def values(name: str) -> list[float]:
        return [float(getattr(result, name) or 0) for result in timed]

    speedups = values("speedup")
    middle, reference_us = percentile(speedups, 50), percentile(values("reference_us"), 50)
    inside = [low <= middle <= high for low, high in zip(values("speedup_low"), values("speedup_high"), strict=True)]
    return {
        "group": LONG if reference_us >= SHORT_US else SHORT, "reference_us": reference_us,
        "candidate_us": percentile(values("candidate_us"), 50), "speedup": middle,
        "spread": percentile(speedups, 95) / percentile(speedups, 5), "range": max(speedups) / min(speedups),
        "trials": percentile(values("trials"), 50), "intervals_with_the_median": sum(inside) / len(inside),
        "slot_ms": 1000 * percentile([result.seconds.gpu for result in timed], 50),
    }  # fmt: skip


def grouped(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each load and group, the worst and the median spread, and how many candidates meet the group's bar."""
    found = []
    for load in dict.fromkeys(row["load"] for row in rows):
        for group, bar in BARS.items():
            mine = [row["spread"] for row in rows if row["load"] == load and row.get("group") == group]
            if mine:
                found.append({
                    "load": load, "group": group, "bar": bar, "candidates": len(mine), "within": sum(s <= bar for s in mine),
                    "median": percentile(mine, 50), "worst": max(mine),
                })  # fmt: skip
    return found


def report(rows: Sequence[dict[str, Any]], summed: Sequence[dict[str, Any]], console: Console) -> None:
    groups = table(
        "Spread of a repeated speedup, p95/p5", "load", "group", "bar", "candidates", "within", "median", "worst", left=2
    )
    for g in summed:
        numbers = (f"{g['bar']:.2f}", str(g["candidates"]), str(g["within"]), f"{g['median']:.4f}", f"{g['worst']:.4f}")
        groups.add_row(g["load"], g["group"], *numbers)
    console.print(groups)
    worst = table("Worst first", "candidate", "load", "reference us", "speedup", "p95/p5", "max/min", "trials", "slot ms", left=2)
    timed = sorted((row for row in rows if "spread" in row), key=lambda row: row["spread"] - BARS[row["group"]], reverse=True)
    for row in timed[:16]:
        over = " over" if row["spread"] > BARS[row["group"]] else ""
        worst.add_row(
            row["name"], row["load"], f"{row['reference_us']:.1f}", f"{row['speedup']:.3f}", f"{row['spread']:.4f}{over}",
            f"{row['range']:.4f}", f"{row['trials']:.0f}", f"{row['slot_ms']:.1f}",
        )  # fmt: skip
    console.print(worst)
    for row in rows:
        if row["statuses"] != ["correct"]:
            console.print(f"{row['name']} ({row['load']}): {', '.join(row['statuses'])}: {'; '.join(row['details'])[:300]}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--candidates", type=int, default=len(SMALL) + len(LARGE), help="how many, small and large alternately")
    parser.add_argument("--openings", type=int, default=5, help="of the pool, for each load")
    parser.add_argument("--repeats", type=int, default=4, help="evaluations of a candidate per opening")
    parser.add_argument("--load", choices=("idle", "busy", "both"), default="both", help="what the CPU's cores do beside it")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--jobs", type=int, default=0, help="evaluations in flight; 0: the pool's default")
    parser.add_argument("--out", type=Path, help="result file, JSON")
    args = parser.parse_args(argv)
    console = Console(width=WIDTH)
    sample = chosen(args.candidates)
    rows: list[dict[str, Any]] = []
    machine: dict[str, Any] = {}
    for turn, load in enumerate(("idle", "busy") if args.load == "both" else (args.load,)):
        cores = len(os.sched_getaffinity(0)) if load == "busy" else 0
        first = turn * args.openings * args.repeats
        try:
            with busy_cores(cores):
                machine, openings = anyio.run(measure, sample, args, load, first)
        except ValueError as error:  # a device that is not there
            parser.error(str(error))
        rows += spreads(sample, openings, load)
    summed = grouped(rows)
    console.print(described(machine))
    report(rows, summed, console)
    write(args.out, {"benchmark": "timing_spread", "machine": machine, "groups": summed, "candidates": rows})
    return 1 if any(row["statuses"] != ["correct"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
