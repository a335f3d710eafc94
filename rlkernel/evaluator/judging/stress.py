"""Inputs that a problem's author would not draw: scaled, and shifted where they lie about zero or on one side of it.

What is done to each tensor is decided by a look at its values (`changes`), for which a GPU is waited for. It holds for every draw
of the problem, so the look is taken once, and `changed` waits for nothing. Source: ours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch

from rlkernel.evaluator.judging.reference_calls import mapped, tensors_of
from rlkernel.evaluator.messages.judgement import Stress
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.tensors import extent

STRESS = 8.0
"""Factor on floating-point inputs in a stressed round."""
LOPSIDED = 4.0
"""How much farther an input with both signs may reach to one side of zero than to the other, so as to be shifted."""
OFF_CENTRE = 2.0**-7
"""How far beside zero an input is centred, in halves of its size. A sum of four million numbers is then eight times as large as
one of random signs is, and one of a product's 4,096 is hardly larger, so that half precision errs in it as ever."""


class Side(Enum):
    """Where an input's numbers lie, if they can be shifted."""

    ONE = "one"
    """None is negative."""
    TWO = "two"
    """They lie about as far on both sides of zero. A mean that is left out is hardly missed in these: of 16,384 normal numbers it
    is 0.008."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to one tensor before it is scaled."""

    side: Side | None = None
    """Where its numbers lie, if it is shifted."""
    shift: float = 0.0
    """What is added to it, once it is centred where it is one-sided."""
    replaced: bool = False
    """Whether other numbers stand in its place, because it holds zeros alone: whoever ignores it would be right."""


def stressed(inputs: list[Any], stress: Stress, zeros: Collection[int] = ()) -> list[Any]:
    """Floating-point inputs, also those in lists and dicts, scaled or shifted, and other numbers in place of zeros alone; codes
    are left as they are. zeros: places among the tensors where zeros stay, see `unread.py`. A GPU is waited for."""
    return changed(inputs, changes(inputs, stress, zeros))


def changes(inputs: list[Any], stress: Stress, zeros: Collection[int] = ()) -> tuple[Change | None, ...]:
    """What is done to each tensor among the inputs; None where it stays. A GPU is waited for."""
    places = enumerate(tensors_of(inputs))
    return tuple(_change(tensor, stress) if holds_numbers(tensor) and place not in zeros else None for place, tensor in places)


def _change(tensor: torch.Tensor, stress: Stress) -> Change | None:
    if stress is Stress.NONE:
        return None
    lies = side(tensor) if stress is Stress.SHIFTED else None
    if lies is None:
        return Change(replaced=all_zero(tensor))
    # A sum over what is centred altogether would be nothing but roundings.
    return Change(lies, half_size(tensor) if lies is Side.TWO else OFF_CENTRE * half_size(tensor - _mean(tensor)))


def changed(inputs: list[Any], found: Sequence[Change | None]) -> list[Any]:
    """The inputs after these changes, one for each tensor. Nothing is waited for."""
    places = itertools.count()

    def change(tensor: torch.Tensor) -> torch.Tensor:
        what = found[next(places)]
        return tensor if what is None else _changed(tensor, what)

    return [mapped(value, change) for value in inputs]


def _changed(tensor: torch.Tensor, what: Change) -> torch.Tensor:
    if what.replaced:
        return wave_like(tensor)
    if what.side is None:
        return tensor * STRESS
    by = what.shift if what.side is Side.TWO else what.shift - _mean(tensor)
    # Zeros are part of the problem, such as one half of a triangular matrix.
    return ((tensor + by) * STRESS).masked_fill_(tensor == 0, 0)


def _mean(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.mean(dtype=torch.float32).to(tensor.dtype)


def all_zero(tensor: torch.Tensor) -> bool:
    """Whether an input holds floating-point zeros and nothing else: whoever ignores it would be right. A GPU is waited for."""
    return holds_numbers(tensor) and tensor.numel() > 0 and not bool((tensor != 0).any())


def wave_like(tensor: torch.Tensor) -> torch.Tensor:
    """Different numbers between -1/2 and 1/2 that depend on their place in memory alone, in a tensor that lies as the given one
    does: what shares memory there, as the rows of an expanded tensor do, is equal here."""
    count = extent(tensor.shape, tensor.stride())
    wave = torch.arange(1, count + 1, dtype=torch.float32, device=tensor.device).sin_().mul_(0.5)
    return wave.to(tensor.dtype).as_strided(tensor.shape, tensor.stride())


def side(value: Any) -> Side | None:
    """Where the numbers of an input lie. None for what is no tensor, and for a mask, whole numbers and codes. A GPU is waited
    for."""
    if not (isinstance(value, torch.Tensor) and holds_numbers(value) and value.numel() > 1):
        return None
    low, high = torch.stack(value.aminmax()).tolist()
    both = low < 0.0 and math.isfinite(low) and math.isfinite(high) and high <= -LOPSIDED * low and -low <= LOPSIDED * high
    if not (both or low >= 0.0) or bool((value == value.round()).all()):
        return None
    return Side.TWO if both else Side.ONE


def half_size(tensor: torch.Tensor) -> float:
    """Half of a tensor's root mean square, rounded to a power of two, so that the same numbers always give the same one."""
    size = float(torch.linalg.vector_norm(tensor, dtype=torch.float32)) / math.sqrt(tensor.numel())
    return 0.5 * 2.0 ** round(math.log2(size)) if 0.0 < size < math.inf else 0.0
