"""Modules of a reference as a round begins with them, made from their plan alone: a round holds no second copy of its weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.errors.wavering import in_float64, with_other_roundings
from rlkernel.evaluator.judging.inputs.shown import put_in_state
from rlkernel.evaluator.judging.references.plan import Plan
from rlkernel.evaluator.judging.references.reference_calls import balance_state, mapped
from rlkernel.evaluator.messages.judgement import Balance, Planting

Turns = Iterable[Sequence[torch.Tensor]]
"""The outputs of one call, again and again."""


def made(plan: Plan, perturbed: bool, balance: Balance | None = None, planting: Planting | None = None) -> nn.Module:
    """A new module, with what is done to its parameters for a round, before the calls that prepare it."""
    model = plan.perturbed() if perturbed else plan.drawn()
    if balance is not None:
        balance_state(model, balance)
    return put_in_state(planting, model, plan.reference.fixed)


def otherwise(
    plan: Plan, build: Callable[[], nn.Module], inputs: list[Any], forward_seed: int
) -> tuple[Callable[[], Turns], Callable[[], Turns]]:  # fmt: skip
    """What gives the outputs of a call with other roundings, and what gives them in float64 and with others there. build: a
    module before the calls that prepare it."""
    made = lambda: plan.prepare(build()), partial(mapped, inputs, torch.clone), forward_seed, plan.terms.usual.bounded
    return partial(with_other_roundings, *made), partial(in_float64, *made)
