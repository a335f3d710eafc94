"""Constants whose other values an output hardly shows, because inputs are large.

Of attention with a learned sink of zeros, whoever takes it for zero is right where scores are 64 times as large: the largest one
alone counts there. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.references.blame import MOST, miss_with
from rlkernel.evaluator.judging.references.plan import Plan
from rlkernel.evaluator.judging.references.reference_calls import constants, mapped
from rlkernel.evaluator.messages.judgement import Tolerance

TELLS = 5.0
"""How many times what is allowed an output differs by where a constant matters."""


def hidden(
    plan: Plan, inputs: list[Any], seed: int, given: Sequence[torch.Tensor], limits: Iterable[Tolerance]
) -> frozenset[str]:  # fmt: skip
    """The constants whose other values a call of the plan's module hardly shows, see `unmissed`."""
    usual = constants(plan.drawn(), plan.reference.fixed)
    return unmissed(plan.perturbed, usual, lambda: mapped(inputs, torch.clone), seed, given, limits)


def unmissed(
    build: Callable[[], nn.Module], usual: Mapping[str, torch.Tensor], inputs: Callable[[], list[Any]], seed: int,
    given: Sequence[torch.Tensor], limits: Iterable[Tolerance],
) -> frozenset[str]:  # fmt: skip
    """The constants that, put back to what they `usual`ly are, leave the outputs nearly as they were `given` with all at other
    values. build: a new module with these; inputs: new arguments of forward; limits: what is allowed of each output. None where
    there are very many constants, each of which costs a call."""
    if len(usual) > MOST:
        return frozenset()
    allowed = max((limit.norm for limit in limits), default=0.0)
    return frozenset(name for name in usual if miss_with(build(), {name: usual[name]}, inputs(), seed, given) < TELLS * allowed)
