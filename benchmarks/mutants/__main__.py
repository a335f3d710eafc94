"""Mutants of honest kernels: which the evaluator accepts, and whether these do what their originals do.

    python -m benchmarks.mutants [--count 300] [--seed 0] [--of red-team] [--kinds mask] [--device cpu] [--out FILE.jsonl]

A mutant is one small change of one honest candidate (`benchmarks/mutants`). Candidates are the red team's honest files, or one
draft for each of the world's tasks. Each accepted mutant is judged again beside its original by the controls of `controls.py`.
Rows are appended one by one, and the same command goes on where it stopped; rows of another evaluator are left aside. Exit status
1 if an accepted mutant differs from its original, or the evaluator failed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from benchmarks.corpus import Case
from benchmarks.drive import WIDTH, about, bar, described
from benchmarks.mutants.controls import Told, told
from benchmarks.mutants.draw import Mutant, draft_cases, draw, honest
from benchmarks.mutants.report import classed, report
from experiments.world.judged import kept_rows
from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.config import PATIENT, EvaluatorConfig
from rlkernel.evaluator.pool import Pool, open_pool
from rlkernel.evaluator.version import verdict_version


def candidates(of: str, device: str, seed: int) -> list[Case]:
    """The honest candidates of the red team, of the world, or of both. device: cpu or gpu."""
    red_team = honest(device) if of != "world" else []
    return red_team if of == "red-team" else [*red_team, *draft_cases(seed)]


def known(path: Path | None, device: str) -> dict[str, dict[str, Any]]:
    """The rows of a result file by their mutants' digests, of this evaluator on this kind of device."""
    rows = [] if path is None else kept_rows(path)
    return {row["digest"]: row for row in rows if (row["evaluator"], row["device"]) == (verdict_version(), device)}


async def judged(pool: Pool, mutant: Mutant) -> dict[str, Any]:
    """The row of one mutant: its verdict, and its controls where it is accepted."""
    problem, controls = mutant.of.problem, list[Told]()
    correct: bool | None = None
    try:
        found = await pool.evaluate(problem, mutant.code)
        correct, status, detail = found.correct, str(found.status), found.detail
        if correct:
            controls = await told(pool, problem, mutant.of.code, mutant.code)
    except (BrokenReference, EvaluatorFailed) as error:
        status, detail = "evaluator_failed", str(error)
    return {
        "digest": mutant.digest, "of": mutant.of.name, "problem": problem.name, "kind": mutant.kind, "line": mutant.line,
        "before": mutant.before, "after": mutant.after, "status": status, "detail": detail, "class": classed(correct, controls),
        "controls": [asdict(one) for one in controls], "evaluator": verdict_version(), "device": "gpu" if pool.runners else "cpu",
    }  # fmt: skip


async def measure(args: argparse.Namespace, drawn: Sequence[Mutant], found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Judge the mutants that have no row in `found`, which gets them. Returns where and with what that was done."""
    missing = [one for one in drawn if one.digest not in found]
    async with open_pool(device=args.device, jobs=args.jobs, config=EvaluatorConfig(limits=PATIENT)) as pool:
        places = anyio.CapacityLimiter(pool.jobs)  # one mutant and its controls at a time, so that finished rows are kept
        with bar("mutants", len(missing)) as advance:

            async def one(mutant: Mutant) -> None:
                async with places:
                    row = found[mutant.digest] = await judged(pool, mutant)
                if args.out is not None:
                    with args.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
                advance()

            async with anyio.create_task_group() as tasks:
                for mutant in missing:
                    tasks.start_soon(one, mutant)
        return about(pool, {})


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="mutants, one of each kind in turn")
    parser.add_argument("--seed", type=int, default=0, help="of the drafts and of the draw")
    parser.add_argument("--of", choices=("red-team", "world", "both"), default="red-team", help="whose honest candidates")
    parser.add_argument("--kinds", default="", metavar="PART", help="only kinds that have this in their name")
    parser.add_argument("--jobs", type=int, default=0, help="evaluations in flight; 0: the pool's default")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--out", type=Path, help="result file, one JSON object per line")
    args = parser.parse_args(argv)
    try:
        device = "gpu" if gpus.select(args.device) else "cpu"
    except ValueError as error:  # a device that is not there
        parser.error(str(error))
    drawn = draw(candidates(args.of, device, args.seed), args.count, args.seed, args.kinds)
    if not drawn:
        parser.error(f"--kinds {args.kinds}: no kind has this in its name and applies")
    found = known(args.out, device)
    machine = anyio.run(measure, args, drawn, found)
    rows = [found[one.digest] for one in drawn]
    console = Console(width=WIDTH)
    console.print(described(machine))
    report(rows, console)
    return 1 if any(row["class"] in ("differs", "failed") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
