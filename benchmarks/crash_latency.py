"""From a crash to its verdict: candidates that die or fault, one at a time in an idle pool.

    python -m benchmarks.crash_latency [--repeats 10] [--device auto] [--out FILE.json]

A candidate cannot tell when it crashes, so what is shown bounds the delay from above: a process that dies while it is traced has
its verdict after `total`, which holds the fork and the trace too. A fault on the GPU is shown beside an honest candidate's slot
and beside what the driver itself needs to report the same fault, measured in a process of its own.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from rich.console import Console

from benchmarks.corpus import Case
from benchmarks.drive import WIDTH, Done, about, described, drive, summary, table, write
from rlkernel.evaluator.pool import open_pool
from tests.red_team import cases as red_team

CRASHES = ("segfault", "gpu_illegal_address", "gpu_trap")
DRIVER = """
import sys, time, torch, triton, triton.language as tl
@triton.jit
def far(x, n, distance, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + distance + i, mask=i < n, other=0.0))
@triton.jit
def trap(x, n, distance, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    if n > 0:
        v = tl.inline_asm_elementwise("trap; max.f32 $0, $1, 0f00000000;", "=f,f", [v], dtype=tl.float32, is_pure=False, pack=1)
    tl.store(x + i, v)
kernel = {"gpu_illegal_address": far, "gpu_trap": trap}[sys.argv[1]]
x = torch.zeros(1024, device="cuda")
kernel[(1,)](x, 0, 1 << 44, BLOCK=32)  # compiles; both numbers are multiples of 16
torch.cuda.synchronize()
begun = time.perf_counter()
kernel[(1,)](x, 32, 1 << 44, BLOCK=32)
try:
    torch.cuda.synchronize()
except RuntimeError:
    print(time.perf_counter() - begun)
"""
"""A script that makes a fault and times until the driver tells it. It is run from a file, because Triton reads a kernel's
source."""


def driver_seconds(kind: str, repeats: int, folder: Path) -> list[float]:
    script = folder / "fault.py"
    script.write_text(DRIVER)
    found = []
    for _ in range(repeats):
        told = subprocess.run([sys.executable, script, kind], capture_output=True, text=True, timeout=120)
        found += [float(told.stdout)] if told.stdout.strip() else []
    return found


async def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Measure everything. Returns the data of the result file."""
    files = red_team.load("hostile")
    problem = files["segfault"].problem
    honest = red_team.load("honest")
    plain = next(file for file in honest.values() if file.problem == problem)
    cases = [Case(problem, "honest", plain.code)] + [Case(files[n].problem, n, files[n].code) for n in CRASHES]
    done: list[Done] = []
    async with open_pool(device=args.device) as pool:
        machine = about(pool, {"repeats": args.repeats, "device": args.device})
        for number in range(args.repeats):
            for case in cases:
                done += await drive(pool, [replace(case, code=f"{case.code}\n# {number}\n")], f"{case.name} {number + 1}")
        gpu = bool(pool.runners)
    rows = [done[start :: len(cases)][1:] for start in range(len(cases))]  # the first of each is warm-up
    found: dict[str, Any] = {
        case.name: {
            "statuses": sorted({one.status for one in row}),
            "total": summary([one.seconds.total for one in row]),
            "gpu": summary([one.seconds.gpu for one in row if one.seconds.gpu]),
        }
        for case, row in zip(cases, rows, strict=True)
    }  # fmt: skip
    async with anyio.TemporaryDirectory() as folder:
        told = {kind: summary(driver_seconds(kind, 3, Path(folder))) for kind in CRASHES[1:]} if gpu else {}
    return {"benchmark": "crash_latency", "machine": machine, "candidates": found, "driver_reports_after": told}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10, help="of each candidate, the first of which does not count")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N")
    parser.add_argument("--out", type=Path, help="result file, JSON")
    args = parser.parse_args()
    if args.repeats < 2:
        parser.error(f"--repeats is {args.repeats}: give at least 2, since the first is warm-up")
    data = anyio.run(measure, args)
    console = Console(width=WIDTH)
    console.print(described(data["machine"]))
    shown = table("Milliseconds, one candidate at a time", "candidate", "status", "total", "p95", "GPU slot", "p95", left=2)
    for name, row in data["candidates"].items():
        numbers = [row[part][which] * 1e3 for part in ("total", "gpu") for which in ("median", "p95")]
        shown.add_row(name, " ".join(row["statuses"]), *(f"{number:.1f}" for number in numbers))
    console.print(shown)
    for kind, seconds in data["driver_reports_after"].items():
        if seconds["count"]:
            console.print(f"{kind}: the driver itself reports it after {1e3 * seconds['median']:.0f} ms")
    write(args.out, data)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
