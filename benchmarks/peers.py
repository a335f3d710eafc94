"""KernelGYM's and KernelBench's own evaluation beside ours: the same references and candidates, one GPU, one candidate at a time.

    python -m benchmarks.peers --kernelgym PATH --kernelbench PATH --out peers.json [--limit-seconds 360]

PATH is a checkout of github.com/hkust-nlp/KernelGYM or github.com/ScalingIntelligence/KernelBench. Their Python packages
(pydantic, pydantic-settings, python-dotenv, redis, aiohttp, tqdm, requests) must be importable, or lie in the folder --site.
How each is run is in `benchmarks/peer_runs.py`, what is judged in `benchmarks/peer_pairs.py`. Every evaluation is written to
--out when it ends; a further run does what is missing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.peer_pairs import PAIRS, SYSTEMS, Item, System, plan
from benchmarks.peer_processes import Peers, broken
from benchmarks.peer_report import Row, describe, report
from benchmarks.peer_runs import KERNELBENCH_SETTINGS, KERNELGYM_SETTINGS

FIRST_GUESS = {"kernelgym": 45.0, "kernelbench": 15.0}
"""The seconds that one evaluation is assumed to take before any was seen; afterwards it is the longest seen."""


class Results:
    """The rows so far, in a file that is whole at any moment. A row counts only for the very text that it was measured on.

    Raises ValueError for a file that is not such a result.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: list[Row] = []
        self.about: dict[str, Any] = {}
        if path.exists():
            try:
                stored = json.loads(path.read_text())
                self.rows, self.about = list(stored["rows"]), dict(stored["about"])
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}: not a result of benchmarks.peers ({error!r}); name another --out") from error

    @staticmethod
    def key(item: Item) -> dict[str, Any]:
        text = "\0".join(item.pair.sources())
        sha = hashlib.sha256(text.encode()).hexdigest()[:16]
        return {"system": item.system, "pair": item.pair.name, "repeat": item.repeat, "sha256": sha}

    def has(self, item: Item) -> bool:
        key = self.key(item)
        return any(_is(row, key) and not row.get("broken") for row in self.rows)

    def add(self, item: Item, answer: Row) -> None:
        """Add a row. It replaces what is known of an older text, and a row that says that the system broke."""
        key = {"system": item.system, "pair": item.pair.name, "repeat": item.repeat}
        self.rows = [row for row in self.rows if not _is(row, key)]
        self.rows.append({**self.key(item), "deserves": item.pair.deserves, "note": item.pair.note, **answer})
        self.save()

    def save(self) -> None:
        part = self.path.with_name(self.path.name + ".part")
        part.write_text(json.dumps({"about": self.about, "rows": self.rows}, indent=1) + "\n")
        part.replace(self.path)


def _is(row: Row, key: dict[str, Any]) -> bool:
    return all(row.get(name) == value for name, value in key.items())


def run_peers(items: Iterable[Item], results: Results, peers: Peers, deadline: float) -> int:
    """Evaluate while there is time: an item only if the longest of its system so far still fits. Returns how many did not.

    A system that breaks twice before it has ever answered is asked no more.
    """
    longest = dict(FIRST_GUESS)
    seen: dict[str, float] = {}
    broke = dict.fromkeys(FIRST_GUESS, 0)
    answered: set[str] = set()
    skipped = 0
    for item in items:
        remaining = deadline - time.monotonic()
        given_up = broke[item.system] >= 2 and item.system not in answered
        if given_up or remaining < longest[item.system]:
            skipped += 1
            continue
        since = time.monotonic()
        row = peers.evaluate(item, remaining)
        seen[item.system] = max(seen.get(item.system, 0.0), time.monotonic() - since)
        longest[item.system] = 1.1 * seen[item.system]
        if row.get("broken"):
            broke[item.system] += 1
        else:
            answered.add(item.system)
        results.add(item, row)
        _say(item, row, time.monotonic() - since)
    return skipped


def _say(item: Item, row: Row, seconds: float) -> None:
    said = describe(row) + (f" ({row['detail'][:100]})" if row["detail"] and not row["accepted"] else "")
    print(f"{item.system} {item.pair.name} #{item.repeat}: {said}, {seconds:.2f} s", flush=True)


def _our_row(found: Any, wall: float) -> Row:
    """An `rlkernel.types.Evaluation` as a row."""
    return {
        "accepted": found.correct, "status": str(found.status), "speedup": found.speedup if found.correct else None,
        "candidate_us": found.candidate_us, "reference_us": found.reference_us, "timing": found.timing, "trials": found.trials,
        "flags": [], "detail": found.detail, "wall_s": wall, "slot_s": found.seconds.gpu,
    }  # fmt: skip


async def run_ours(items: Sequence[Item], results: Results, device: str, jobs: int, deadline: float) -> int:
    """Evaluate by our own pool, one candidate at a time like the peers. Every repeat is in a pool of its own, as theirs are in
    processes of their own.

    Returns how many did not fit before the deadline.
    """
    from rlkernel.evaluator.pool import open_pool
    from rlkernel.types import Problem

    skipped = 0
    for repeat in sorted({item.repeat for item in items}):
        async with open_pool(device=device, jobs=jobs) as pool:
            for item in (item for item in items if item.repeat == repeat):
                if time.monotonic() > deadline:
                    skipped += 1
                    continue
                reference, candidate = item.pair.sources()
                since = time.perf_counter()
                try:
                    found = await pool.evaluate(Problem(item.pair.problem, 1, "train", reference), candidate)
                    row = _our_row(found, time.perf_counter() - since)
                except RuntimeError as error:  # our own failure, not the candidate's: a row that says so
                    row = broken(error)
                results.add(item, row)
                _say(item, row, time.perf_counter() - since)
    return skipped


def about(paths: dict[System, list[Path]]) -> dict[str, Any]:
    """Where and with what the figures were measured."""
    packages = {}
    for name in ("torch", "triton", "numpy", "pydantic"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "absent"
    return {
        "python": platform.python_version(), "machine": platform.machine(), "cores": len(os.sched_getaffinity(0)), "gpu": _gpu(),
        "packages": packages, "commits": {system: _commit(where[0]) for system, where in paths.items()},
        "settings": {"kernelgym": KERNELGYM_SETTINGS, "kernelbench": KERNELBENCH_SETTINGS},
        "speedup": {
            "rlkernel": "the evaluator's own: see docs/evaluator/gpu.md",
            "kernelgym": "means of 100 runs, reference / candidate, each in a process of its own; warm L2, grad mode on",
            "kernelbench": "its ref_runtime / runtime: means of 100 runs after an L2 flush; both in one process, grad mode on",
        },
        "slot": {
            "rlkernel": "Seconds.gpu", "kernelgym": "time in SubprocessWorkerPool.execute_task, restarts included, both tasks",
            "kernelbench": "life of the candidate's process: the next one starts after it",
        },
    }  # fmt: skip


def _gpu() -> str:
    try:
        command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "none"


def _commit(path: Path) -> str:
    """The checkout's commit: from git, or from a file COMMIT where the folder was exported without its history."""
    for folder in (path, path.parent):
        if (folder / "COMMIT").exists():
            return (folder / "COMMIT").read_text().strip()
    done = subprocess.run(["git", "-C", str(path), "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


def checkouts(
    systems: Sequence[str], kernelgym: Path | None, kernelbench: Path | None, site: Path | None
) -> dict[System, list[Path]]:
    """The PYTHONPATH of each peer that is asked for. Raises ValueError with the command that gets what is missing."""
    found: dict[System, list[Path]] = {}
    wanted: tuple[tuple[System, Path | None, str, str], ...] = (
        ("kernelgym", kernelgym, "hkust-nlp/KernelGYM", "kernelgym/worker/subprocess_pool.py"),
        ("kernelbench", kernelbench, "ScalingIntelligence/KernelBench", "src/kernelbench/eval.py"),
    )
    for system, path, repository, file in wanted:
        if system not in systems:
            continue
        if path is None or not (path / file).exists():
            where = "not given" if path is None else f"{path} has no {file}"
            raise ValueError(f"--{system}: {where}; git clone https://github.com/{repository}, or name --systems without it")
        package = path / "src" if system == "kernelbench" else path
        found[system] = [package.resolve(), *([site.resolve()] if site else [])]
    return found


def parse(argv: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernelgym", type=Path, help="checkout of hkust-nlp/KernelGYM")
    parser.add_argument("--kernelbench", type=Path, help="checkout of ScalingIntelligence/KernelBench")
    parser.add_argument("--site", type=Path, help="folder with the peers' Python packages, where they are not installed")
    parser.add_argument("--out", type=Path, default=Path("peers.json"), help="results; what it already holds is not done again")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--kernelgym-pairs", type=int, default=6, help="first so many pairs (about 18 to 30 s each)")
    parser.add_argument("--kernelbench-pairs", type=int, default=len(PAIRS), help="first so many pairs (about 8 s each)")
    parser.add_argument("--repeats", type=int, default=5, help="evaluations of each repeated pair")
    parser.add_argument("--limit-seconds", type=float, default=360.0, help="start nothing that would end later than this")
    parser.add_argument("--device", default="cuda:0", help="of our evaluator; the peers know cuda:0 only")
    parser.add_argument("--jobs", type=int, default=8, help="of our evaluator")
    return parser.parse_args(argv)


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="rlkernel-peers-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    import anyio
    from rich.console import Console

    args = parse()
    deadline = time.monotonic() + args.limit_seconds
    try:
        paths = checkouts(args.systems, args.kernelgym, args.kernelbench, args.site)
        results = Results(args.out)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    results.about = about(paths)
    if paths and results.about["gpu"] == "none":
        raise SystemExit("no NVIDIA GPU found (nvidia-smi): the peers need one; --systems rlkernel runs without them")
    planned = plan(args.systems, args.kernelgym_pairs, args.kernelbench_pairs, args.repeats)
    missing = [item for item in planned if not results.has(item)]
    ours = [item for item in missing if item.system == "rlkernel"]
    skipped = anyio.run(run_ours, ours, results, args.device, args.jobs, deadline)
    with _scratch() as scratch:
        peers = Peers(paths, scratch)
        try:
            skipped += run_peers([item for item in missing if item.system != "rlkernel"], results, peers, deadline)
        finally:
            peers.close()
    results.save()
    console = Console(width=100)
    for table in report(results.rows):
        console.print(table)
    if skipped:
        console.print(
            f"{skipped} evaluations were left out (--limit-seconds {args.limit_seconds:.0f}): run again with the same --out"
        )


if __name__ == "__main__":
    main()
