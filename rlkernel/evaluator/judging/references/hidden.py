"""Constants whose other values an output hardly shows, because inputs are large.

Of attention with a learned sink of zeros, whoever takes it for zero is right where scores are 64 times as large: the largest one
alone counts there. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from rlkernel.evaluator.judging.references.blame import MOST, miss_with
from rlkernel.evaluator.judging.references.plan import Plan
from rlkernel.evaluator.judging.references.reference_calls import constants, mapped

TELLS = 5.0
"""How many times what is allowed an output differs by where a constant matters."""


def hidden(plan: Plan, inputs: list[Any], seed: int, given: Sequence[torch.Tensor], allowed: float) -> frozenset[str]:
    """The constants that, put back to what they are in the problem, leave the outputs nearly as they were `given` with all at
    other values. allowed: the error, relative to their norm, that a candidate may make. None where there are very many constants,
    each of which costs a call."""
    usual = constants(plan.drawn(), plan.reference.fixed)
    if len(usual) > MOST:
        return frozenset()

    def missed(name: str) -> float:
        return miss_with(plan.perturbed(), {name: usual[name]}, mapped(inputs, torch.clone), seed, given)

    return frozenset(name for name in usual if missed(name) < TELLS * allowed)
