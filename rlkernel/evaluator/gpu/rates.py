"""Short measurements of a card: its bandwidth and what a launch costs, with sizes that only a process that uses it is told."""

from __future__ import annotations

import torch

from rlkernel.evaluator.gpu import driver
from rlkernel.evaluator.gpu.attempts import ATTEMPTS, bandwidth, launch_cost
from rlkernel.evaluator.gpu.stopwatch import Stopwatch, mark, settle
from rlkernel.evaluator.messages.gpu import Rates

COPIED = 1 << 30
"""The bytes of the buffer that is copied, at most a sixteenth of the card's memory."""
LAUNCHES = 100
SECONDS = 10.0


def measure(stopwatch: Stopwatch) -> Rates:
    """Take a fraction of a second. Raises Hung."""
    about = torch.cuda.get_device_properties(0)
    size = min(COPIED, about.total_memory // 16)
    source, target = (torch.zeros(size, dtype=torch.uint8, device="cuda") for _ in range(2))
    runs = [stopwatch.run(lambda: target.copy_(source), 100.0)[1] for _ in range(ATTEMPTS)]
    settle(SECONDS)
    small = torch.zeros(1, device="cuda")

    def launches(spin_us: float) -> tuple[float, bool]:
        stopwatch.spin(spin_us)
        start = mark()
        for _ in range(LAUNCHES):
            small.add_(1.0)
        end = mark()
        held_up = start.query()
        settle(SECONDS)
        return float(start.elapsed_time(end)) * 1000.0 / LAUNCHES, held_up

    # Three digits: a profile is a text that people read, too.
    copied, launch = (float(f"{x:.3g}") for x in (bandwidth(size, [run.us for run in runs]), launch_cost(launches)))
    return Rates(copied, launch, int(about.L2_cache_size), driver.shared_bytes(), int(about.multi_processor_count))
