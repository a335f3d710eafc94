"""Small numbers that a reference adds to something, so that nothing is divided by zero: `root + 1e-8` in a step of RMSprop.

What is guarded may be zero only where several inputs are at once: a moment and its gradient. No draw has that, and one input of
zeros does not show it. So zeros are planted at the same places of all inputs of one shape. What one input shows alone is shown by
rows that are next to nothing (`edges`). Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import torch

from rlkernel.evaluator.messages.judgement import Plant
from rlkernel.evaluator.program.operators import base_name
from rlkernel.evaluator.program.schema import Op, Program

ADD = "add"
MOST = 2.0**-6
"""The largest number that is taken for a guard."""


def guards(program: Program) -> bool:
    """Whether a reference adds a small number to something."""
    adding = (step for step in program.forward if isinstance(step, Op) and base_name(step.op) == ADD)
    return any(map(is_guard, (number for step in adding for number in (*step.args[1:2], step.kwargs.get("other")))))


def is_guard(number: Any) -> bool:
    """Whether what is added is small enough."""
    return isinstance(number, (int, float)) and 0.0 < abs(number) <= MOST


def bare(operand: torch.Tensor, number: float) -> torch.Tensor:
    """Where nothing that counts stands beside what is added."""
    return operand.abs() <= abs(number)


def bared(inputs: Sequence[torch.Tensor], places: Sequence[int]) -> Iterator[Plant]:
    """Zeros at the same places of all inputs of one shape, of those at these places: single ones, and whole rows."""
    alike = groupby(sorted(places, key=lambda place: tuple(inputs[place].shape)), key=lambda place: inputs[place].shape)
    for shape, group in alike:
        first, *others = group
        if others:
            yield Plant(first, (0.0,), also=tuple(others))
            if len(shape) > 1:
                yield Plant(first, (0.0,), rows=True, also=tuple(others))
