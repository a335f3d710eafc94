"""Whether verdicts depend on chance: every candidate of the red team is judged several times, with other draws each time.

    python -m benchmarks.steadiness [--times 10] [--names REGEX] [--kinds honest,hostile] [--device cpu] [--out FILE.json]

A candidate is unsteady where one of its verdicts is not what its first line asks for. Prints these, each with the shares of its
verdicts and one detail of a wrong one. Exit status 1 if there are any.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from benchmarks.corpus import Case
from benchmarks.drive import WIDTH, Done, about, described, drive, table, write
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.evaluator.pool import open_pool
from tests.red_team import cases as red_team

LIMITS = Limits(trace_seconds=15, run_seconds=60)
COPY = " copy "


@dataclass(frozen=True, slots=True)
class Unsteady:
    """A candidate with a wrong verdict."""

    name: str
    deserves: tuple[str, ...]
    found: dict[str, int]
    """Status -> how many of its verdicts it is."""
    detail: str
    """The detail of the first wrong verdict."""


def copies(chosen: Sequence[red_team.Case], times: int) -> list[Case]:
    """Every candidate as often as asked, each copy but the first with a comment of its own, since a pool keeps the verdict of a
    text."""
    return [
        Case(case.problem, f"{case.name}{COPY}{number}", f"{case.code}\n# copy {number}\n" if number else case.code)
        for number in range(times)
        for case in chosen
    ]


def unsteady(chosen: Sequence[red_team.Case], done: Sequence[Done], device: str) -> list[Unsteady]:
    """The candidates that had a wrong verdict, in order of their names."""
    verdicts: dict[str, list[Done]] = {}
    for one in done:
        verdicts.setdefault(one.case.name.partition(COPY)[0], []).append(one)
    found = []
    for case in sorted(chosen, key=lambda case: case.name):
        deserves = tuple(sorted(map(str, case.expected(device))))
        wrong = [one for one in verdicts[case.name] if one.status not in deserves]
        if wrong:
            counts = Counter(one.status for one in verdicts[case.name])
            found.append(Unsteady(case.name, deserves, dict(counts.most_common()), wrong[0].detail))
    return found


async def judge(args: argparse.Namespace, chosen: Sequence[red_team.Case]) -> tuple[dict[str, Any], list[Done]]:
    async with open_pool(device=args.device, jobs=args.jobs, config=EvaluatorConfig(limits=LIMITS)) as pool:
        machine = about(pool, {key: str(value) for key, value in vars(args).items()})
        return machine, await drive(pool, copies(chosen, args.times), "verdicts")


def report(machine: dict[str, Any], found: Sequence[Unsteady], count: int, times: int, console: Console) -> None:
    console.print(described(machine))
    console.print(f"{count} candidates judged {times} times each: {len(found)} had a wrong verdict", style="bold")
    if found:
        listed = table("Unsteady", "candidate", "deserves", "found", "detail of a wrong one", left=4)
        for one in found:
            shares = ", ".join(f"{status} {number}" for status, number in one.found.items())
            listed.add_row(one.name, " or ".join(one.deserves), shares, one.detail[:160])
        console.print(listed)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=10, help="verdicts per candidate")
    parser.add_argument("--names", default="", help="a regular expression; candidates whose name has no match are left out")
    parser.add_argument("--kinds", default="honest,hostile", help="folders of the red team")
    parser.add_argument("--jobs", type=int, default=0, help="evaluations in flight; 0: the pool's default")
    parser.add_argument("--device", default="cpu", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--out", type=Path, help="result file, JSON")
    args = parser.parse_args(argv)
    loaded = [case for kind in args.kinds.split(",") for case in red_team.load(kind).values()]
    chosen = [case for case in loaded if re.search(args.names, case.name)]
    if not chosen or args.times < 1:
        parser.error("no verdict is asked for: --times is at least 1, and --names has a match in a name of the red team")
    machine, done = anyio.run(judge, args, chosen)
    found = unsteady(chosen, done, "cpu" if args.device == "cpu" else "gpu")
    report(machine, found, len(chosen), args.times, Console(width=WIDTH))
    rows = [one.to_json() for one in done]
    write(args.out, {"benchmark": "steadiness", "machine": machine, "rows": rows})
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
