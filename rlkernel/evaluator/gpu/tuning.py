"""Which configuration of a launch is the fastest on this GPU."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable

import torch

from rlkernel.evaluator.gpu import driver
from rlkernel.evaluator.gpu.stopwatch import mark, settle

TUNING_RUNS = 3


class NoConfig(Exception):
    """No configuration of a kernel can be launched on this GPU."""


def fastest(choices: Iterable[int], run: Callable[[int], None], seconds: float) -> int:
    """The configuration that takes the least time of those that can be launched. `run` enqueues one launch with a
    configuration, which may take `seconds`. Raises DriverError, Hung, NoConfig."""
    best: tuple[float, int] | None = None
    for choice in choices:
        try:
            run(choice)
        except driver.DriverError:
            if driver.lost_context() is not None:
                raise
            continue  # too many registers or too much shared memory for this GPU: another one will do
        torch.cuda._sleep(40_000)
        marks = [mark()]
        for _ in range(TUNING_RUNS):
            run(choice)
            marks.append(mark())
        settle((TUNING_RUNS + 1) * seconds)
        us = statistics.median(a.elapsed_time(b) for a, b in itertools.pairwise(marks))
        if best is None or us < best[0]:
            best = (us, choice)
    if best is None:
        raise NoConfig
    return best[1]
