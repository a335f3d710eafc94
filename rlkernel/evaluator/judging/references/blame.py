"""Names the parameters that a wrong candidate has ignored, because they are constant as the problem's author draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.references.reference_calls import call, state_of, tensors_of
from rlkernel.evaluator.program.tensors import overwrite

EXPLAINED = 0.01
"""Relative error below which outputs are those of a module whose parameters were ignored."""
MOST = 24
"""The most constant parameters that are tried; deep networks have hundreds, and each costs a call of the reference."""


def ignored(
    build: Callable[[], nn.Module], constants: Mapping[str, torch.Tensor], inputs: Callable[[], list[Any]], seed: int,
    found: Sequence[torch.Tensor],
) -> str:  # fmt: skip
    """`; norm.weight is ignored`, or nothing where that does not explain the outputs `found`.

    build: a new module of the reference, with constants at other values; constants: what they were; inputs: new arguments of
    forward. Constants are put back one by one, always the one that brings the reference closest to what was found.
    """
    if not 0 < len(constants) <= MOST:
        return ""
    left, back = list(constants), list[str]()
    best = miss_with(build(), {}, inputs(), seed, found)
    while left:
        misses = {name: miss_with(build(), {n: constants[n] for n in (*back, name)}, inputs(), seed, found) for name in left}
        name = min(left, key=lambda name: misses[name])
        if not misses[name] < best:
            return ""
        best = misses[name]
        back.append(name)
        left.remove(name)
        if best <= EXPLAINED:
            return f"; {' and '.join(back)} {'is' if len(back) == 1 else 'are'} ignored"
    return ""


def miss_with(
    model: nn.Module, constants: Mapping[str, torch.Tensor], inputs: list[Any], seed: int, found: Sequence[torch.Tensor]
) -> float:  # fmt: skip
    """Relative error of `found` against the module with some parameters put back; infinite where shapes differ."""
    state = state_of(model)
    for name, value in constants.items():
        overwrite(state[name], value)
    wanted = tensors_of(call(model, inputs, seed))
    if [t.shape for t in wanted] != [t.shape for t in found]:
        return float("inf")
    miss = sum(float((a.double() - b.double()).abs().square().sum()) for a, b in zip(wanted, found, strict=True))
    size = sum(float(a.double().abs().square().sum()) for a in wanted)
    return math.sqrt(miss / max(size, 1e-300))
