"""Tells the noise of roundings from a small answer.

A float64 result that is next to nothing beside what the reference gives may have another cause than cancellation. The text may
ask for the dtype, as `torch.finfo(x.dtype).eps` does, or the float64 reference may run without the casts that make the answer
(`references/widening.py`). Such an answer hardly changes where inputs and weights move by their rounding, and noise becomes
another noise. Source: ours.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.errors.own_error import OwnError, errors
from rlkernel.evaluator.judging.references.reference_calls import REFUSALS, call, mapped, state_of, tensors_of
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.tensors import overwrite

ROUNDINGS = 2.0
"""By how many times its dtype's resolution each number is moved, up or down. Half of it may round back to the same number."""
ANOTHER = 0.1
"""Norm of the difference, relative, from which on an answer is another one. Two independent draws differ by 1.4."""


def confirmed(
    own: Sequence[OwnError], found: Sequence[torch.Tensor], again: Callable[[], Sequence[torch.Tensor] | None]
) -> list[OwnError]:
    """The errors `own` of the tensors `found`, which count as noise only where `again` gives others: the same call on arguments
    that are moved by their rounding. It is called where there is something to confirm, and may give None, which confirms nothing.
    """
    if not any(one.noise for one in own):
        return list(own)
    moved = again() or found
    pairs = zip(own, found, moved, strict=True)
    return [replace(one, noise=0.0) if one.noise and not _differs(f, m) else one for one, f, m in pairs]


def moved_call(
    model: nn.Module, before: Mapping[str, torch.Tensor], inputs: list[Any], seed: int, names: Sequence[str] = ()
) -> list[torch.Tensor] | None:
    """The outputs of a copy of `model` on arguments that are moved by their rounding, and behind them its parameters and buffers
    of these `names`. `before`: the parameters and buffers that the call starts with. None where the reference refuses them."""
    try:
        other = copy.deepcopy(model)
        with torch.no_grad():
            for name, tensor in state_of(other).items():
                overwrite(tensor, _moved(before[name]))
        outputs = tensors_of(call(other, mapped(inputs, _moved), seed))
    except REFUSALS:
        return None
    return [*outputs, *(state_of(other)[name] for name in names)]


def _moved(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor in its own dtype, with its numbers moved up or down by `ROUNDINGS`."""
    if not holds_numbers(tensor):
        return tensor.clone()
    step = ROUNDINGS * torch.finfo(tensor.dtype).eps
    factor = torch.randint(0, 2, tensor.shape, dtype=torch.float64, device=tensor.device).mul_(2.0 * step).add_(1.0 - step)
    return torch.empty_like(tensor).copy_(factor.mul_(tensor))


def _differs(found: torch.Tensor, moved: torch.Tensor) -> bool:
    """Whether what a call gives is another answer on arguments that are moved."""
    return found.shape == moved.shape and errors(moved, found)[0] >= ANOTHER
