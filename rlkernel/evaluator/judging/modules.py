"""Modules of a reference as a round begins with them, made from their plan alone: a round holds no second copy of its weights."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.errors.wavering import OtherRoundings
from rlkernel.evaluator.judging.inputs.shown import put_in_state
from rlkernel.evaluator.judging.references.plan import Plan
from rlkernel.evaluator.judging.references.reference_calls import balance_state, mapped
from rlkernel.evaluator.messages.judgement import Balance, Planting


def made(plan: Plan, perturbed: bool, balance: Balance | None = None, planting: Planting | None = None) -> nn.Module:
    """A new module, with what is done to its parameters for a round, before the calls that prepare it."""
    model = plan.perturbed() if perturbed else plan.drawn()
    if balance is not None:
        balance_state(model, balance)
    return put_in_state(planting, model, plan.reference.fixed)


def other_roundings(plan: Plan, build: Callable[[], nn.Module], inputs: list[Any], forward_seed: int) -> OtherRoundings:
    """What a call gives with other roundings. build: a module before the calls that prepare it."""
    again = partial(mapped, inputs, torch.clone)
    return OtherRoundings(lambda: plan.prepare(build()), again, forward_seed, plan.terms.usual.bounded)
