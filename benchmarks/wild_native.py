"""Candidates run as plain Python in KernelBench's way, a process each, several at a time. The control of `benchmarks.wild`.

    python -m benchmarks.wild_native CORPUS/manifest.jsonl --out native.jsonl --ours ours.jsonl [--jobs 8] [--seconds 60]

The rules are those of `rlkernel.evaluator.native.referee`: one seed before either construction, five draws of inputs (fewer of
large outputs), and KernelBench's tolerances. First all candidates run side by side and are compared. Then, with `--ours`, the
candidates that both sides accept run again one at a time, and the referee's clock confirms their times. Rows are appended one by
one, a later row of a candidate replaces an earlier one, and the same command goes on where it stopped. A case whose reference
cannot be used leaves no row.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from rlkernel.commands.evaluate import Case, finished_ids, read_manifest
from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.config import GIB, EvaluatorConfig, Limits
from rlkernel.evaluator.messages.native import Way
from rlkernel.evaluator.native.agreement import native_from_json, native_to_json
from rlkernel.evaluator.native_path import open_native


async def run(cases: Sequence[Case], out: Path, gpu: str, jobs: int, seconds: float, *, timed: bool) -> list[str]:
    """Run cases, `jobs` at a time, and append their rows to `out`. gpu: a card's UUID, or "" for the CPU. Returns a line for each
    case whose reference cannot be used."""
    config = EvaluatorConfig(limits=Limits(native_seconds=seconds, gpu_memory_bytes=128 * GIB))
    places = anyio.Semaphore(jobs)
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder, out.open("a") as file:
        async with open_native(gpu, config, Path(folder, "alone.lock")) as native:

            async def one(case: Case) -> None:
                async with places:
                    try:
                        found = await native.run(case.problem, case.candidate, Way.KERNELBENCH, timed=timed)
                    except (BrokenReference, EvaluatorFailed) as error:
                        broken.append(f"{case.id}: {error}")
                        return
                file.write(json.dumps({"id": case.id, **native_to_json(found)}) + "\n")
                file.flush()

            async with anyio.create_task_group() as tasks:
                for case in cases:
                    tasks.start_soon(one, case)
    return broken


def _worth_timing(native: Path, ours: Path) -> set[str]:
    """The ids of the candidates that both sides accept, and that have no times yet."""
    accepted = {row["id"] for row in map(json.loads, ours.read_text().splitlines()) if row["correct"]}
    found = {row["id"]: native_from_json(row) for row in map(json.loads, native.read_text().splitlines())}
    return {name for name, one in found.items() if name in accepted and one.right and not one.calls}


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
    cases, done = read_manifest(given.manifest), finished_ids(given.out)
    left = [case for case in cases if case.id not in done]
    broken = anyio.run(partial(run, left, given.out, gpu, given.jobs, given.seconds, timed=False))
    print(f"{len(left) - len(broken)} candidates run natively; {given.out} has {len(done) + len(left) - len(broken)}", flush=True)
    for line in broken:
        print(f"left out: {line}", flush=True)
    if given.ours is not None:
        worth = _worth_timing(given.out, given.ours)
        again = [case for case in cases if case.id in worth]
        anyio.run(partial(run, again, given.out, gpu, 1, given.seconds, timed=True))
        print(f"{len(again)} candidates timed")


if __name__ == "__main__":
    main()
