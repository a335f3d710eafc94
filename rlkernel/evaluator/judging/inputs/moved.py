"""One input or parameter that is moved: scaled and shifted, all of it or a part.

Inputs are scaled and shifted under stress all together, and drawn parameters never are. What shows only where one of them lies
elsewhere, such as the limit of `scale.exp().clamp(max=100)` or a gate that keeps, is judged in a round in which that one is moved
(`kept.py`, `unshown.py`). Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import holds_truths, mapped_at, state_of
from rlkernel.evaluator.messages.judgement import Moved
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.tensors import overwrite

MOST_TENSORS = 8
"""The most inputs and parameters that are moved."""
SHIFTS = (3.0, 6.0, 10.0)
"""By what an input is shifted to either side, the mildest first: a sigmoid of 6 and a little keeps half over 200 steps."""
NOTE = "an input or a parameter moved"
"""Stands behind a miss in such a round."""


def with_moved(inputs: list[Any], what: Moved) -> list[Any]:
    """The arguments of forward, one of which is moved."""
    return inputs if what.place is None else mapped_at(inputs, what.place, lambda tensor: moved(tensor, what))


def movable(given: Sequence[torch.Tensor]) -> list[int]:
    """The places of the inputs that may be moved: several numbers, and no truth values."""
    return [place for place, t in enumerate(given) if holds_numbers(t) and t.numel() > 1 and not holds_truths(t)]


def free_parameters(reference: SeededReference, model: nn.Module) -> dict[str, torch.Tensor]:
    """The parameters that match no pattern of the reference's own `FIXED`."""
    named = {name: t.detach() for name, t in model.named_parameters() if holds_numbers(t) and t.numel()}
    return {name: t for name, t in named.items() if not any(fnmatchcase(name, pattern) for pattern in reference.fixed)}


def flat_parameters(reference: SeededReference, model: nn.Module) -> list[str]:
    """The names of parameters that are a number or a row of them, as gates' biases are."""
    return [name for name, t in free_parameters(reference, model).items() if t.dim() <= 1][:MOST_TENSORS]


def move_state(model: nn.Module, what: Moved) -> nn.Module:
    """The module, one of whose parameters is moved, if that is a parameter."""
    if what.place is None:
        with torch.no_grad():
            parameter = state_of(model)[what.name]
            overwrite(parameter, moved(parameter, what))
    return model


def moved(tensor: torch.Tensor, what: Moved) -> torch.Tensor:
    """The numbers of a tensor, scaled and shifted; of one of several parts along an axis alone, where there are some.

    >>> moved(torch.zeros(4), Moved(0, shift=3.0)), moved(torch.zeros(4), Moved(0, shift=3.0, part=1, parts=2))
    (tensor([3., 3., 3., 3.]), tensor([0., 0., 3., 3.]))
    """
    made = torch.empty_like(tensor).copy_(tensor)
    part = made if what.parts == 1 else made.chunk(what.parts, what.axis)[what.part]
    part.mul_(what.scale).add_(what.shift)
    return made
