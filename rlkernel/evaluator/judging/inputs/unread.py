"""Finds the inputs of zeros that a reference does not read, such as memory that it is given for its result.

A candidate may rely on what a problem always gives. Zeros that the reference reads get other values in a round, so that a
candidate that passes over them is wrong: `x + bias`. Zeros that it overwrites stay zeros, because they say nothing of the
reference, and a kernel may add into them: `out[0] = x.sum()`. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.errors.comparison import bits
from rlkernel.evaluator.judging.inputs.stress import all_zero, stressed
from rlkernel.evaluator.judging.references.reference_calls import call, state_of, tensors_of
from rlkernel.evaluator.messages.judgement import Places, Stress

MOST = 8
"""The most inputs of zeros that are tried, each of which costs a call of the reference; more are taken for read."""


def unread_zeros(model: Callable[[], nn.Module], draw: Callable[[], list[Any]], seed: int, stress: Stress) -> frozenset[int]:
    """The places among the tensors of forward's arguments that hold zeros alone on which the call does not depend: with other
    values in all other zeros, it gives the same outputs and leaves the same arguments and state, bit by bit.

    model: a new module; draw: new arguments; both the same ones each time. None are named where the reference refuses such
    arguments. A reference that gives other bits each time is taken to read all of them. A GPU is waited for.
    """
    zeros = [place for place, tensor in enumerate(tensors_of(draw())) if all_zero(tensor)]
    if stress is Stress.NONE or not 0 < len(zeros) <= MOST:
        return frozenset()
    try:
        usual = _after(model(), stressed(draw(), stress), seed)
        return frozenset(
            place for place in zeros if alike(usual, _after(model(), stressed(draw(), stress, Places(kept=(place,))), seed))
        )
    except Exception:  # a reference may refuse such inputs in its own way
        return frozenset()


def _after(model: nn.Module, inputs: list[Any], seed: int) -> list[torch.Tensor]:
    """What a call returns and leaves: its outputs, its parameters and buffers, and its arguments; nothing in place of an argument
    that it leaves as it was."""
    before = [tensor.clone() for tensor in tensors_of(inputs)]
    outputs = tensors_of(call(model, inputs, seed))
    left = [t.new_empty(0) if torch.equal(bits(t), bits(b)) else t for t, b in zip(tensors_of(inputs), before, strict=True)]
    return [*outputs, *state_of(model).values(), *left]


def alike(one: list[torch.Tensor], other: list[torch.Tensor]) -> bool:
    """Whether two calls gave the same, bit by bit."""
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(
        a.shape == b.shape and a.dtype is b.dtype and torch.equal(bits(a), bits(b)) for a, b in pairs
    )
