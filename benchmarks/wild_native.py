"""Candidates run as plain Python in KernelBench's way, a process each, several at a time. The control of `benchmarks.wild`.

    python -m benchmarks.wild_native CORPUS/manifest.jsonl --out native.jsonl --ours ours.jsonl [--jobs 8] [--seconds 60]

The rules are those of `rlkernel.evaluator.native.referee`: one seed before either construction, five draws of inputs,
KernelBench's tolerances, and times that the referee's clock confirms. While one referee times, no other does: with `--ours` only
the candidates that we accept are timed, since no other speedup is compared. Rows are appended one by one, and the same command
goes on where it stopped. A case whose reference cannot be used leaves no row.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Container, Sequence
from pathlib import Path

import anyio

from rlkernel.commands.evaluate import Case, finished_ids, read_manifest
from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator.cards import gpus
from rlkernel.evaluator.config import GIB, EvaluatorConfig, Limits
from rlkernel.evaluator.messages.native import Way
from rlkernel.evaluator.native.agreement import native_to_json
from rlkernel.evaluator.native_path import open_native


async def run(
    cases: Sequence[Case], out: Path, gpu: str, jobs: int, seconds: float, timed: Container[str] | None = None
) -> list[str]:
    """Run cases, `jobs` at a time, and append their rows to `out`. gpu: a card's UUID, or "" for the CPU; timed: the ids of the
    cases that are timed, None for all. Returns a line for each case whose reference cannot be used."""
    config = EvaluatorConfig(limits=Limits(native_seconds=seconds, gpu_memory_bytes=128 * GIB))
    places = anyio.Semaphore(jobs)
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder, out.open("a") as file:
        async with open_native(gpu, config, Path(folder, "alone.lock")) as native:

            async def one(case: Case) -> None:
                async with places:
                    try:
                        clocked = timed is None or case.id in timed
                        found = await native.run(case.problem, case.candidate, Way.KERNELBENCH, timed=clocked)
                    except (BrokenReference, EvaluatorFailed) as error:
                        broken.append(f"{case.id}: {error}")
                        return
                file.write(json.dumps({"id": case.id, **native_to_json(found)}) + "\n")
                file.flush()

            async with anyio.create_task_group() as tasks:
                for case in cases:
                    tasks.start_soon(one, case)
    return broken


def _accepted(ours: Path) -> set[str]:
    """The ids of the candidates that `rlkernel evaluate` found correct."""
    return {row["id"] for row in map(json.loads, ours.read_text().splitlines()) if row["correct"]}


def main(argv: Sequence[str] | None = None) -> None:
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--ours", type=Path, help="our verdicts; what they do not accept is run, but not timed")
    parser.add_argument("--device", default="cuda:0", help="cuda:N, or cpu for candidates without kernels")
    parser.add_argument("--jobs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0, help="one candidate's process may take")
    given = parser.parse_args(argv)
    cards = gpus.select(given.device)
    done = finished_ids(given.out)
    left = [case for case in read_manifest(given.manifest) if case.id not in done]
    timed = None if given.ours is None else _accepted(given.ours)
    broken = anyio.run(run, left, given.out, cards[0].uuid if cards else "", given.jobs, given.seconds, timed)
    print(f"{len(left) - len(broken)} candidates run natively; {given.out} has {len(done) + len(left) - len(broken)}")
    for line in broken:
        print(f"left out: {line}")


if __name__ == "__main__":
    main()
