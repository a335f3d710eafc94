"""How true modelled time is: the same candidates modelled without a GPU and measured on one, ratio by ratio.

    python -m benchmarks.modelled_time [--count 160] [--red-team] [--out FILE.json]

The candidates are distinct honest ones over the suite; with `--red-team` also those of `tests/red_team` that are right. A ratio
is modelled by measured, so 0.5 for a time means that the model is twice too fast. A speedup's ratio is what reward sees: it
should not be far above 1. Needs a GPU that a named profile stands for (`rlkernel doctor`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from benchmarks.corpus import Case, corpus
from benchmarks.drive import WIDTH, Done, about, described, drive, percentile, table, write
from rlkernel.evaluator.pool import open_pool
from rlkernel.types import Evaluation, Status
from tests.red_team import cases as red_team

FIGURES = ("candidate_us", "reference_us", "speedup")
PERCENTILES = (5, 25, 50, 75, 95)
SHOWN = 12
"""The rows of the table of candidates that the model flatters most."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A candidate that is right on both paths, and its two verdicts."""

    case: Case
    modelled: Evaluation
    measured: Evaluation

    def ratio(self, figure: str) -> float:
        """A figure as modelled by the same as measured."""
        return float(getattr(self.modelled, figure)) / float(getattr(self.measured, figure))

    def to_json(self) -> dict[str, Any]:
        values = {
            f"{how}_{figure}": getattr(getattr(self, how), figure) for figure in FIGURES for how in ("modelled", "measured")
        }
        return {"name": self.case.name, **values}


def candidates(count: int, seed: int, with_red_team: bool) -> tuple[Case, ...]:
    """The honest candidates, and the right ones of the red team where they are asked for."""
    if not with_red_team:
        return corpus(count, seed)
    files = [file for folder in ("honest", "hostile") for file in red_team.load(folder).values()]
    right = [file for file in files if Status.CORRECT in file.cpu & file.gpu]
    return *corpus(count, seed), *(Case(file.problem, file.name, file.code) for file in right)


async def judged(cases: Sequence[Case], device: str, jobs: int) -> tuple[dict[str, Any], list[Done]]:
    """The machine, and every candidate's verdict on one path."""
    async with open_pool(device=device, jobs=jobs) as pool:
        return about(pool, {"device": device}), await drive(pool, cases, f"judging on {device}")


def pairs(modelled: Sequence[Done], measured: Sequence[Done]) -> list[Pair]:
    """The candidates that are right and have times on both paths, the one that the model flatters most first."""
    results = {done.case: done.result for done in measured}
    both = [(done.case, done.result, results[done.case]) for done in modelled]
    found = [Pair(case, a, b) for case, a, b in both if a and b and a.correct and b.correct and a.speedup and b.speedup]
    return sorted(found, key=lambda pair: -pair.ratio("speedup"))


def report(found: Sequence[Pair], console: Console) -> None:
    """Print the percentiles of each ratio, and the candidates whose speedup is most too high."""
    spread = table("Modelled by measured", "figure", *(f"p{percent}" for percent in PERCENTILES))
    for figure in FIGURES:
        ratios = [pair.ratio(figure) for pair in found]
        spread.add_row(figure, *(f"{percentile(ratios, percent):.2f}" for percent in PERCENTILES))
    console.print(spread)
    flattered = table("Flattered most", "candidate", "ratio", "modelled us", "measured us", "modelled x", "measured x")
    for pair in found[:SHOWN]:
        times = (f"{verdict.candidate_us:.1f}" for verdict in (pair.modelled, pair.measured))
        speedups = (f"{verdict.speedup:.2f}" for verdict in (pair.modelled, pair.measured))
        flattered.add_row(pair.case.name, f"{pair.ratio('speedup'):.2f}", *times, *speedups)
    console.print(flattered)


async def run(options: argparse.Namespace, console: Console) -> int:
    cases = candidates(options.count, options.seed, options.red_team)
    machine, measured = await judged(cases, "cuda", options.jobs)
    _, modelled = await judged(cases, "cpu", options.jobs)
    found = pairs(modelled, measured)
    console.print(f"{described(machine)}: {len(found)} of {len(cases)} candidates are right on both paths")
    report(found, console)
    write(options.out, {"machine": machine, "pairs": [pair.to_json() for pair in found]})
    return 0 if found else 1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=160, help="distinct honest candidates")
    parser.add_argument("--red-team", action="store_true", help="also the right ones of the red team")
    parser.add_argument("--jobs", type=int, default=0, help="evaluations in flight; 0: the pool's default")
    parser.add_argument("--seed", type=int, default=0, help="which candidates")
    parser.add_argument("--out", type=Path, help="result file")
    return anyio.run(run, parser.parse_args(argv), Console(width=WIDTH))


if __name__ == "__main__":
    sys.exit(main())
