"""Short measurements of a card: its bandwidth and what a launch costs, with sizes that only a process that uses it is told."""

from __future__ import annotations

import statistics

import torch

from rlkernel.evaluator.gpu import driver
from rlkernel.evaluator.gpu.stopwatch import Stopwatch, mark, settle
from rlkernel.evaluator.messages.gpu import Rates

COPIED = 1 << 30
"""The bytes of the buffer that is copied, at most a sixteenth of the card's memory."""
COPIES = 7
LAUNCHES = 200
SECONDS = 10.0


def measure(stopwatch: Stopwatch) -> Rates:
    """Take a fraction of a second. Raises Hung."""
    about = torch.cuda.get_device_properties(0)
    size = min(COPIED, about.total_memory // 16)
    source, target = (torch.zeros(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    runs = [stopwatch.run(lambda: target.copy_(source), 100.0)[1] for _ in range(COPIES)]
    settle(SECONDS)
    copy_us = statistics.median(run.us for run in runs)
    small = torch.zeros(1, device="cuda")
    stopwatch.spin(20.0 * LAUNCHES)  # the host enqueues all launches meanwhile
    start = mark()
    for _ in range(LAUNCHES):
        small.add_(1.0)
    end = mark()
    settle(SECONDS)
    launch_us = float(start.elapsed_time(end)) * 1000.0 / LAUNCHES
    copied = float(f"{2.0 * size / copy_us:.3g}")  # three digits: a profile is a text that people read, too
    launch = float(f"{launch_us:.3g}")
    return Rates(copied, launch, int(about.L2_cache_size), driver.shared_bytes(), int(about.multi_processor_count))
