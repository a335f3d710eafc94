"""Hostile candidates among honest ones in one pool: every verdict right, no neighbour affected, nothing left behind.

    python -m benchmarks.fault_injection [--honest 500] [--hostile 500] [--device auto] [--out FILE.json]

The hostile ones are `tests/red_team/hostile`, each with the verdict of its first line, copied with another comment until there
are enough; the honest ones are the corpus of the benchmarks. All are shuffled and evaluated at once. Before them a few honest
ones are evaluated alone, to compare their latency with the neighbours'. Exit status 1 for a wrong verdict or anything left.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from benchmarks.corpus import Case, corpus
from benchmarks.drive import WIDTH, Done, about, described, drive, summary, table, write
from benchmarks.leftovers import Before, Watch, compare
from benchmarks.steadiness import copies
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.config import EvaluatorConfig, Limits
from rlkernel.evaluator.pool import open_pool
from tests.red_team import cases as red_team


@dataclass(frozen=True, slots=True)
class Deserved:
    """The verdict that a hostile candidate's first line asks for."""

    statuses: frozenset[str]
    coverage: tuple[float, float] | None


def hostile(count: int, device: str) -> tuple[list[Case], dict[str, Deserved]]:
    """`count` candidates, one file after the other, and what they deserve by name. device: cpu or gpu."""
    files = list(red_team.load("hostile").values())
    found = copies(files, math.ceil(count / len(files)))[:count]
    pairs = zip(found, itertools.cycle(files), strict=False)
    return found, {copy.name: Deserved(frozenset(map(str, file.expected(device))), file.coverage) for copy, file in pairs}


def wrong(done: Done, deserved: Mapping[str, Deserved]) -> str | None:
    """The verdict that should have been found instead, or None for a right one. Honest candidates deserve `correct`."""
    asked = deserved.get(done.case.name, Deserved(frozenset({"correct"}), None))
    if done.status not in asked.statuses:
        return " or ".join(sorted(asked.statuses))
    coverage = None if done.result is None else done.result.coverage
    if asked.coverage is not None and coverage is not None and not asked.coverage[0] <= coverage <= asked.coverage[1]:
        return f"coverage in {asked.coverage[0]:g} to {asked.coverage[1]:g}, not {coverage:.2f}"
    return None


@dataclass(frozen=True, slots=True)
class Injected:
    """What one run saw. `alone`: honest candidates before the others came."""

    machine: dict[str, Any]
    alone: tuple[Done, ...]
    mixed: tuple[Done, ...]
    deserved: dict[str, Deserved]
    wall_s: float
    runner_starts: int
    """The number of processes that drove a GPU, the first ones included."""
    unfinished: tuple[str, ...]
    """The files in the pool's scratch folders after the last verdict and before closing, binaries and logs excepted."""
    left: dict[str, Any]


async def inject(args: argparse.Namespace) -> Injected:
    """Open, evaluate, close, and look at what is left."""
    cards = gpus.select(args.device)
    alone, honest = corpus(args.honest + args.alone, args.seed)[args.honest :], corpus(args.honest, args.seed)
    attacks, deserved = hostile(args.hostile, "gpu" if cards else "cpu")
    mixture = [*honest, *attacks]
    random.Random(args.seed).shuffle(mixture)
    config = EvaluatorConfig(limits=replace(Limits(), trace_seconds=args.trace_seconds))
    async with anyio.create_task_group() as tasks, own_folder() as folder:
        before, watch = Before.now(cards), Watch()
        tasks.start_soon(watch.forever)
        async with open_pool(device=args.device, jobs=args.jobs, config=config) as pool:
            settings = {key: str(value) if isinstance(value, Path) else value for key, value in vars(args).items()}
            machine = about(pool, settings)
            first = await drive(pool, alone, "honest alone")
            start = time.perf_counter()
            mixed = await drive(pool, mixture, "honest and hostile")
            wall = time.perf_counter() - start
            starts = sum(runner.starts for runner in pool.runners)
            kept = ("binaries", "zygote.log")
            unfinished = sorted(str(path) for path in folder.glob("*/*") if path.name not in kept)
        left = await compare(before, watch, cards, folder)
        tasks.cancel_scope.cancel()
    return Injected(machine, tuple(first), tuple(mixed), deserved, wall, starts, tuple(unfinished), left)


@asynccontextmanager
async def own_folder() -> AsyncIterator[Path]:
    """A folder for this process's temporary files meanwhile, so that what is in it comes from this run."""
    usual = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="rlkernel-faults-") as folder:
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = usual


def recovery(mixed: Sequence[Done], deserved: Mapping[str, Deserved]) -> dict[str, Any]:
    """The recovery after a verdict that cost a GPU's runner: seconds until the next candidate had the GPU, and until the next
    verdict from it.

    With several GPUs another one may have given that next verdict.
    """
    order = sorted((done for done in mixed if done.seconds.gpu > 0), key=lambda done: done.ended)
    waits, answers, held = [], [], []
    for place, done in enumerate(order[:-1]):
        if done.status not in ("crash", "timeout", "out_of_bounds", "runtime_error") or done.case.name not in deserved:
            continue
        after = order[place + 1]
        answers.append(after.ended - done.ended)
        waits.append(max(0.0, after.ended - after.seconds.gpu - done.ended))
        held.append(done.seconds.gpu)
    return {
        "until_the_gpu_is_held_again": summary(waits),
        "until_the_next_verdict": summary(answers),
        "slot_of_the_lost": summary(held),
    }


def figures(found: Injected) -> dict[str, Any]:
    """The summary of the result file. Times are in seconds."""
    attacks = [done for done in found.mixed if done.case.name in found.deserved]
    neighbours = [done for done in found.mixed if done.case.name not in found.deserved]

    def wrongs(rows: Sequence[Done]) -> list[dict[str, str]]:
        pairs = ((done, wrong(done, found.deserved)) for done in rows)
        return [
            {"name": done.case.name, "found": done.status, "deserves": asked, "detail": done.detail}
            for done, asked in pairs
            if asked
        ]

    accepted = [done.case.name for done in attacks if done.status == "correct" and wrong(done, found.deserved)]
    by_status = {
        status: {
            "total": summary([done.seconds.total for done in attacks if done.status == status]),
            "gpu": summary([done.seconds.gpu for done in attacks if done.status == status and done.seconds.gpu > 0]),
        }
        for status in sorted({done.status for done in attacks})
    }
    return {
        "honest": len(neighbours), "hostile": len(attacks), "per_second": len(found.mixed) / found.wall_s,
        "wrong_hostile": wrongs(attacks), "wrong_honest": wrongs([*found.alone, *neighbours]), "accepted_hostile": accepted,
        "honest_alone": summary([done.seconds.total for done in found.alone]),
        "honest_neighbours": summary([done.seconds.total for done in neighbours]),
        "honest_slot_alone": summary([done.seconds.gpu for done in found.alone]),
        "honest_slot_neighbours": summary([done.seconds.gpu for done in neighbours]),
        "hostile_by_status": by_status, "recovery": recovery(found.mixed, found.deserved), "runner_starts": found.runner_starts,
        "unfinished_in_scratch": list(found.unfinished), **found.left,
    }  # fmt: skip


def report(found: Injected, summed: dict[str, Any], console: Console) -> None:
    console.print(described(found.machine))
    verdicts = sum(wrong(done, found.deserved) is None for done in found.mixed)
    line = f"{verdicts} of {len(found.mixed)} verdicts right ({summed['honest']} honest, {summed['hostile']} hostile), "
    console.print(f"{line}{len(summed['accepted_hostile'])} hacks accepted; {summed['per_second']:.1f}/s", style="bold")
    for kind in ("wrong_honest", "wrong_hostile"):
        if summed[kind]:
            listed = table(kind.replace("_", " "), "candidate", "found", "deserves", "detail", left=4)
            for row in summed[kind]:
                listed.add_row(row["name"], row["found"], row["deserves"], row["detail"][:120])
            console.print(listed)
    times = table("Milliseconds", "what", "count", "median", "p95", "max")
    parts = {
        "honest alone": summed["honest_alone"], "honest among hostile": summed["honest_neighbours"],
        "GPU slot, honest alone": summed["honest_slot_alone"], "GPU slot, honest among hostile": summed["honest_slot_neighbours"],
        **{f"hostile {status}": values["total"] for status, values in summed["hostile_by_status"].items()},
        **{f"GPU slot, {status}": values["gpu"] for status, values in summed["hostile_by_status"].items()},
        **{f"a fault on the GPU, {name.replace('_', ' ')}": values for name, values in summed["recovery"].items()},
    }  # fmt: skip
    for what, values in parts.items():
        if values["count"]:
            times.add_row(what, str(values["count"]), *(f"{1000 * values[name]:.0f}" for name in ("median", "p95", "max")))
    console.print(times)
    gained = ", ".join(f"{extra >> 20} MiB" for extra in summed["gpu_bytes"].values()) or "no GPU"
    console.print(
        f"left behind: {'; '.join(summed['left']) or 'nothing'} after {1000 * summed['settled_s']:.0f} ms "
        f"({summed['processes_seen']} processes seen, GPU memory {gained}, "
        f"own memory {summed['own_bytes'] >> 20} MiB more); "
        f"entries in scratch before closing: {len(summed['unfinished_in_scratch'])}; "
        f"GPU runners started: {summed['runner_starts']}"
    )
    if summed["files_of_others"]:
        console.print(f"new files that may be anybody's: {', '.join(summed['files_of_others'][:8])}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--honest", type=int, default=500, help="distinct honest candidates among the hostile ones")
    parser.add_argument("--hostile", type=int, default=500, help="hostile candidates, one file of the red team after the other")
    parser.add_argument("--alone", type=int, default=40, help="honest candidates evaluated before, without neighbours")
    parser.add_argument("--trace-seconds", type=int, default=15, help="limit of a trace, which a busy machine makes longer")
    parser.add_argument("--jobs", type=int, default=0, help="evaluations in flight; 0: the pool's default")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--seed", type=int, default=0, help="of the corpus and of the order")
    parser.add_argument("--out", type=Path, help="result file, JSON")
    args = parser.parse_args(argv)
    console = Console(width=WIDTH)
    try:
        found = anyio.run(inject, args)
    except ValueError as error:  # a device that is not there, a count that is too large
        parser.error(str(error))
    summed = figures(found)
    report(found, summed, console)
    rows = [{**done.to_json(), "deserves": wrong(done, found.deserved)} for done in (*found.alone, *found.mixed)]
    run = {"machine": found.machine, "wall_s": found.wall_s}
    write(args.out, {"benchmark": "fault_injection", **run, **summed, "rows": rows})
    return 1 if summed["wrong_hostile"] or summed["wrong_honest"] or summed["left"] else 0


if __name__ == "__main__":
    sys.exit(main())
