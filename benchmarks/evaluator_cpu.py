"""Evaluations per second without a GPU, cold and cached, and where one evaluation's time goes.

    python -m benchmarks.evaluator_cpu [--count 60] [--jobs 2]

The candidates are distinct (a constant differs). Each is traced, compiled for sm_90, interpreted and judged.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from dataclasses import dataclass

import anyio
from rich.console import Console
from rich.table import Table

from benchmarks.usage import Usage
from rlkernel.evaluator.pool import open_pool
from rlkernel.types import Evaluation, Problem

REFERENCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 4096
COLS = 8192
SMALL = {"ROWS": 16, "COLS": 96}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        x = x + self.bias
        x = F.gelu(x)
        return x * FACTOR

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return []
"""

CANDIDATE = """
import torch, triton
import torch.nn as nn
import triton.language as tl

COLS = 8192

@triton.jit
def fused(x_ptr, b_ptr, y_ptr, n, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = i < n
    x = tl.load(x_ptr + i, mask=keep) + tl.load(b_ptr + i % cols, mask=keep)
    x = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(y_ptr + i, x * FACTOR, mask=keep)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        y = torch.empty_like(x)
        fused[(triton.cdiv(x.numel(), 1024),)](x, self.bias, y, x.numel(), x.shape[1], BLOCK=1024)
        return y
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one run of the benchmark saw, in seconds."""

    opened: float
    alone: float
    """One evaluation while nothing else runs and everything is warm."""
    wall: float
    """All cold evaluations, from the first question to the last verdict."""
    cpu: float
    """The CPU time of these, of every process, which a busy machine changes less than the wall clock."""
    results: tuple[Evaluation, ...]


async def measure(count: int, jobs: int) -> Measured:
    """Open a pool, evaluate a few candidates one by one, then time `count` cold ones."""
    start = time.perf_counter()
    results: list[Evaluation] = []
    async with open_pool(device="cpu", jobs=jobs) as pool:
        opened = time.perf_counter() - start

        async def one(index: int) -> None:
            factor = f"{0.5 + index / 1000:.3f}"
            problem = Problem("bias_gelu_scale", 2, "train", REFERENCE.replace("FACTOR", factor))
            results.append(await pool.evaluate(problem, CANDIDATE.replace("FACTOR", factor)))

        await one(-1)
        alone = []
        for index in range(-6, -1):
            since = time.perf_counter()
            await one(index)
            alone.append(time.perf_counter() - since)
        results.clear()
        before = Usage.now()
        async with anyio.create_task_group() as tasks:
            for index in range(count):
                tasks.start_soon(one, index)
        after = Usage.now()
        cpu = after.parent + after.children - before.parent - before.children
        return Measured(opened, statistics.median(alone), after.wall - before.wall, cpu, tuple(results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    args = parser.parse_args()
    found = anyio.run(measure, args.count, args.jobs)
    results = found.results
    wrong = [r for r in results if not r.correct]
    if wrong:
        raise SystemExit(
            f"{len(wrong)} of {len(results)} honest candidates were not correct: {wrong[0].status} {wrong[0].detail}"
        )
    table = Table("stage", "median ms", "p95 ms", box=None)
    per_second, cpu_ms = args.count / found.wall, 1000 * found.cpu / args.count
    summary = {"open_s": found.opened, "per_second": per_second, "cpu_ms": cpu_ms, "alone_ms": 1000 * found.alone}
    for stage in ("trace", "compile", "run", "total"):
        values = sorted(1000 * float(getattr(r.seconds, stage)) for r in results)
        summary[f"{stage}_ms"] = statistics.median(values)
        table.add_row(stage, f"{statistics.median(values):.0f}", f"{values[int(0.95 * len(values))]:.0f}")
    console = Console()
    cores = len(os.sched_getaffinity(0))
    console.print(f"{platform.machine()}, {cores} cores, {args.jobs} jobs; pool opened in {found.opened:.1f} s")
    rate = f"{per_second:.1f} cold evaluations per second, {cpu_ms:.0f} ms of CPU each"
    console.print(f"{rate}; one alone: {1000 * found.alone:.0f} ms")
    console.print(table)
    print(json.dumps({k: round(v, 2) for k, v in summary.items()}))


if __name__ == "__main__":
    main()
