"""Which problems are trained in which step, fixed before the run, so that a resumed run sees the same data."""

from __future__ import annotations

import random

from rlkernel.errors import UsageError


def schedule(count: int, per_step: int, steps: int, seed: int) -> tuple[tuple[int, ...], ...]:
    """The problems of every step: `steps` tuples of `per_step` different indices below `count`.

    Every index is used once before any is used again, up to the steps in which one pass ends and the next begins.
    Raises UsageError when a step asks for more problems than there are.
    """
    if per_step > count:
        raise UsageError(f"Run.prompts_per_step is {per_step}, but there are {count} training problems: lower it")
    generator = random.Random(seed)
    waiting: list[int] = []
    plan = []
    for _ in range(steps):
        chosen: list[int] = []
        while len(chosen) < per_step:
            fresh = [index for index in waiting if index not in chosen]
            if not fresh:
                waiting += generator.sample(range(count), count)
                continue
            chosen.append(fresh[0])
            waiting.remove(fresh[0])
        plan.append(tuple(chosen))
    return tuple(plan)
