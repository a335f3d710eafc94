"""Where the time of a card's process goes while distinct, cold candidates are judged: by phase, and by function.

    python -m benchmarks.card_profile [--count 320] [--functions 60] --out FILE.txt

The load is that of `benchmarks.evaluator_throughput`. The card's process alone is looked at, by `benchmarks.card_probe`: its
phases as a tree, and with `--functions N` also cProfile's first N functions by own and by cumulative time. cProfile makes
Python's own work take about twice as long, so that the tree is best read without it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import anyio
from rich.console import Console

from benchmarks.card_probe import VARIABLE, Job
from benchmarks.drive import WIDTH
from benchmarks.evaluator_throughput import WARM_UP, figures, measure, offenders, report
from rlkernel.evaluator.processes import launching
from rlkernel.evaluator.processes.child import Child
from rlkernel.evaluator.processes.fork_server import ForkServer
from rlkernel.types import TIMING_WIDTH

START = "rlkernel.evaluator.processes.start"
PATIENCE_SECONDS = 30.0
"""How long a card's process has to write down what was found, once nobody asks it any more."""


def started(job: Job) -> Any:
    """What starts a process in place of `subprocess.Popen`: a card's zygote through the probe, all others as they are."""
    popen = subprocess.Popen

    def start(command: list[str], *, env: dict[str, str], **rest: Any) -> subprocess.Popen[bytes]:
        if env["CUDA_VISIBLE_DEVICES"]:
            command = ["benchmarks.card_probe" if word == START else word for word in command]
            env = {**env, VARIABLE: job.to_text()}
        return popen(command, env=env, **rest)

    return start


async def _patient_kill(server: ForkServer, child: Child) -> None:
    """In place of `ForkServer._kill`: a child may take its time until it ends."""
    with anyio.move_on_after(PATIENCE_SECONDS):
        await child.ended.wait()
    server.kill(child)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=320, help="distinct candidates")
    parser.add_argument("--jobs", type=int, default=0, help="evaluations in flight; 0: the pool's default")
    parser.add_argument("--device", default="auto", help="auto, cuda or cuda:N; with cpu there is nothing to look at")
    parser.add_argument("--seed", type=int, default=0, help="of the corpus")
    parser.add_argument("--functions", type=int, default=0, help="functions that cProfile lists; 0: it does not run")
    parser.add_argument("--out", type=Path, required=True, help="result file, text")
    args = parser.parse_args(argv)
    console = Console(width=WIDTH, record=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        job = Job(str(Path(folder) / "found"), WARM_UP, args.functions)
        shim = SimpleNamespace(Popen=started(job), DEVNULL=subprocess.DEVNULL)
        stack.enter_context(patch.object(launching, "subprocess", shim))
        stack.enter_context(patch.object(ForkServer, "_kill", _patient_kill))
        found = anyio.run(measure, args.count, args.jobs, args.device, args.seed, TIMING_WIDTH, None)
        report(found, figures(found), console)
        wrong = offenders(found.rows, console)
        parts = [path.read_text(encoding="utf-8") for path in sorted(Path(folder).iterdir())]
    if not parts:
        parser.error("no card was used: there is nothing to look at")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text("\n\n".join([console.export_text(), *parts]), encoding="utf-8")
    console.print(f"{args.out} has the phases of {len(parts)} processes")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
