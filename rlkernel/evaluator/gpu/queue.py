"""Bounds what is on its way to the GPU, so that the host waits where it looks at the clock, and not inside the driver.

The driver holds about a thousand launches. Behind a kernel that never ends, the next one blocks the host for ever, and nobody
learns which kernel was left out.
"""

from __future__ import annotations

from collections import deque

import torch

from rlkernel.evaluator.gpu.stopwatch import mark, wait
from rlkernel.evaluator.program.recurrent import is_recurrent
from rlkernel.evaluator.program.schema import Op, Step

EVERY = 16
"""Steps between two events. A step is up to 7 launches, with its red zones and random bytes; few operators are more than 10."""
AHEAD = 2
"""Events that may be on their way when the next one is made, so that about 48 steps are."""


class Queue:
    """The steps of calls that are not timed. `seconds` is how long one of its events may take, see `stopwatch.wait`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._steps = 0
        self._events: deque[torch.cuda.Event] = deque()

    def before(self, step: Step) -> None:
        """Make room for a step that is about to be enqueued. Raises Hung; a CUDA error raises as torch reports it.

        A recurrent layer is as many launches as its sequence is long, so that it waits for all that is on its way.
        """
        alone = isinstance(step, Op) and is_recurrent(step.op)
        self._steps += 1
        if self._steps % EVERY and not alone:
            return
        self._events.append(mark())
        while len(self._events) > (0 if alone else AHEAD):
            wait(self._events.popleft(), self._seconds)
