"""The reference under torch.compile: the second baseline. It has a process of its own: Inductor starts threads and processes."""

from __future__ import annotations

import os
from typing import Any

import torch

from rlkernel.errors import one_line
from rlkernel.evaluator.gpu.problem import GpuProblem
from rlkernel.evaluator.gpu.stopwatch import Run, Stopwatch, settle
from rlkernel.evaluator.judging.references.reference_calls import call, draw_seed
from rlkernel.evaluator.judging.timing import typical
from rlkernel.evaluator.messages.gpu import CompiledTimes, NotCompiled

TRIALS = 21
"""The number of timed runs of each side."""
SEEDS = 3
"""The seeds of their inputs, which take turns: a draw may take seconds, and is kept then."""
SPIN_US = 300.0
"""The spin in front of every run, in microseconds."""


def compiled_time(source: str, name: str, stopwatch: Stopwatch) -> CompiledTimes | NotCompiled:
    """Device times of runs with and without torch.compile by turns, on the inputs of few seeds."""
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    problem = GpuProblem(source, name)
    model = problem.model(draw_seed())
    try:
        fast: Any = torch.compile(model)
        call(fast, problem.inputs(draw_seed()), 0)
    except Exception as error:  # Inductor fails in many ways, and the baseline is then absent
        return NotCompiled(one_line(error))
    runs: dict[str, list[Run]] = {"eager_us": [], "compiled_us": []}
    seeds = [draw_seed() for _ in range(SEEDS)]
    for trial in range(TRIALS):
        inputs = problem.inputs(seeds[trial % SEEDS])
        for side, module in (("eager_us", model), ("compiled_us", fast)):
            runs[side].append(stopwatch.run(lambda: call(module, inputs, 0), SPIN_US)[1])  # noqa: B023
    settle(60.0)
    return CompiledTimes(**{
        side: typical([run.us for run in made if not run.void] or [run.us for run in made]) for side, made in runs.items()
    })  # fmt: skip
