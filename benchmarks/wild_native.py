"""Candidates run as plain Python in KernelBench's way, a process each, several at a time. The control of `benchmarks.wild`.

    python -m benchmarks.wild_native CORPUS/manifest.jsonl --out native.jsonl --ours ours.jsonl [--jobs 8] [--seconds 60]

The rules are those of `rlkernel.evaluator.native.referee`: one seed before either construction, five draws of inputs (fewer of
large outputs), and KernelBench's tolerances. All candidates run side by side and are compared. Who is wrong is given the
reference's weights once more, because some collections hand weights over where KernelBench relies on the seed; such a row says
`given`. Who ran out of memory or time is run once more with nobody beside it. With `--ours`, the candidates that both sides
accept run again, are timed one at a time, and the referee's clock confirms their times. Rows are appended one by one, a later
row of a candidate replaces an earlier one, and the same command goes on where it stopped. A case whose reference cannot be used
leaves no row.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import anyio

from benchmarks.wild import rows
from rlkernel.commands.manifest import Case, finished_ids, read_manifest
from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.config import GIB, EvaluatorConfig, Limits
from rlkernel.evaluator.messages.native import NativeEnd, NativeFound, Way
from rlkernel.evaluator.native.agreement import lacked_memory, native_from_json, native_to_json
from rlkernel.evaluator.native_path import open_native


@dataclass(frozen=True, slots=True)
class Runs:
    """Where candidates run, and where their rows go. gpu: a card's UUID, or "" for the CPU."""

    out: Path
    gpu: str
    seconds: float

    async def run(self, cases: Sequence[Case], jobs: int, way: Way = Way.KERNELBENCH, *, timed: bool = False) -> list[str]:
        """Run cases, `jobs` at a time, and append their rows. Returns a line for each case whose reference cannot be used."""
        config = EvaluatorConfig(limits=Limits(native_seconds=self.seconds, gpu_memory_bytes=128 * GIB))
        places = anyio.Semaphore(jobs)
        broken: list[str] = []
        with tempfile.TemporaryDirectory() as folder, self.out.open("a") as file:
            async with open_native(self.gpu, config, Path(folder, "alone.lock")) as native:

                async def one(case: Case) -> None:
                    async with places:
                        try:
                            found = await native.run(case.problem, case.candidate, way, timed=timed)
                        except (BrokenReference, EvaluatorFailed) as error:
                            broken.append(f"{case.id}: {error}")
                            return
                    if way is Way.KERNELBENCH or found.right or found.matches:
                        given = {} if way is Way.KERNELBENCH else {"given": "weights"}
                        file.write(json.dumps({"id": case.id, **native_to_json(found), **given}) + "\n")
                        file.flush()

                async with anyio.create_task_group() as tasks:
                    for case in cases:
                        tasks.start_soon(one, case)
        return broken


async def compared(runs: Runs, cases: Sequence[Case], jobs: int) -> list[str]:
    """Run the cases that have no row yet, and once more those that were in each other's way or need the reference's weights."""
    done = finished_ids(runs.out)
    broken = await runs.run([case for case in cases if case.id not in done], jobs)
    wrong = {name for name, one in natives(runs.out).items() if one.ended is NativeEnd.RAN and not one.right}
    await runs.run([case for case in cases if case.id in wrong and case.id not in done], jobs, Way.JUDGED)
    lacking = {line.partition(": ")[0] for line in broken if lacked_memory(line)}
    lacking |= {name for name, one in natives(runs.out).items() if one.ended is NativeEnd.TIMEOUT or lacked_memory(one.detail)}
    again = [case for case in cases if case.id in lacking and case.id not in done]
    broken = [line for line in broken if not lacked_memory(line)] + await runs.run(again, 1)
    return broken


def natives(path: Path) -> dict[str, NativeFound]:
    """The last row of each candidate."""
    return {row["id"]: native_from_json(row) for row in rows(path)}


async def time(runs: Runs, cases: Sequence[Case], jobs: int, accepted: Set[str]) -> int:
    """Time the candidates of `accepted` that are natively right and have no times yet, each as it was found right. Returns how
    many."""
    found = natives(runs.out)
    left = {name for name, one in found.items() if name in accepted and (one.right or one.matches) and not one.calls}
    last = {row["id"]: "given" in row for row in rows(runs.out)}
    for way, given in ((Way.KERNELBENCH, False), (Way.JUDGED, True)):
        await runs.run([case for case in cases if case.id in left and last[case.id] is given], jobs, way, timed=True)
    return len(left)


def main(argv: Sequence[str] | None = None) -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--ours", type=Path, help="our verdicts; the candidates that both sides accept are timed")
    parser.add_argument("--device", default="cuda:0", help="cuda:N, or cpu for candidates without kernels")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0, help="one candidate's process may take")
    given = parser.parse_args(argv)
    cards = gpus.select(given.device)
    gpu = cards[0].uuid if cards else ""
    cases, runs = read_manifest(given.manifest), Runs(given.out, gpu, given.seconds)
    broken = anyio.run(compared, runs, cases, given.jobs)
    print(f"{given.out} has {len(finished_ids(given.out))} of {len(cases)} candidates", flush=True)
    for line in broken:
        print(f"left out: {line}", flush=True)
    if given.ours is not None:
        accepted = {row["id"] for row in rows(given.ours) if row["correct"]}
        print(f"{anyio.run(time, runs, cases, given.jobs, accepted)} candidates timed")


if __name__ == "__main__":
    main()
