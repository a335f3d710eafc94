"""Inputs with nothing in them, which show what a reference does where nothing is left.

`(loss * mask).sum() / mask.sum().clamp(min=1)` is zero where a mask leaves nothing, and NaN for who forgets the limit; of
`where(top == 0, 0, range / top)` black pixels show it, and no other numbers; and of `where((ids == 0).all(1), 0, ...)` a row of
padding alone. So zeros are planted: in rows of masks and in all of a mask, and in slices of other inputs along one axis or
another. Where nothing differs, a range is zero and its numbers need not be: so slices of one number come before those of zeros,
which are what `where(range > 0, (x - low) / range, x)` gives for them anyway. What several inputs make may be nothing only where
all of them are, as `(x - y).norm().clamp(min=1e-6)` is: zeros at the same places of several come last. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from rlkernel.evaluator.judging.inputs.effects import EXTREMES, GATHERS, LIMITS, Effect
from rlkernel.evaluator.judging.inputs.guards import bared, bared_slices
from rlkernel.evaluator.judging.references.reference_calls import holds_truths
from rlkernel.evaluator.messages.judgement import Plant
from rlkernel.evaluator.program.codes import holds_numbers

_OF_ZERO: dict[tuple[str, str], Callable[[float], bool]] = {
    ("eq", "true"): lambda number: number == 0,
    ("ne", "false"): lambda number: number == 0,
    ("lt", "true"): lambda number: number > 0,
    ("le", "true"): lambda number: number >= 0,
    ("gt", "false"): lambda number: number >= 0,
    ("ge", "false"): lambda number: number > 0,
}
"""What a zero shows of a comparison with a number."""


def is_of_nothing(effect: Effect) -> bool:
    """Whether an operator has this effect on a zero that is computed, or on a slice of zeros.

    >>> [is_of_nothing(Effect(1, "clamp", side, 1.0)) for side in ("low", "high")]
    [True, False]
    >>> [is_of_nothing(Effect(1, name, "true", 0.0)) for name in ("eq", "lt")]
    [True, False]
    """
    if effect.name in GATHERS:
        return True
    if effect.place is not None or effect.number is None:
        return False
    if effect.name in LIMITS | EXTREMES:
        return effect.side == "low" and effect.number > 0
    shows = _OF_ZERO.get((effect.name, effect.side))
    return shows is not None and shows(effect.number)


def absences(inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """One number, or zeros, in slices, the mildest first: of masks zeros in rows and then in all of them, of other numbers along
    each axis, and of several inputs at once."""
    masks = [place for place, tensor in enumerate(inputs) if tensor.numel() > 1 and _hides(tensor)]
    for place in masks:
        numbers = (0.0,) if holds_truths(inputs[place]) else (_usual(inputs[place]), 0.0)
        yield from (Plant(place, (number,), along=(-1,)) for number in numbers if inputs[place].dim() > 1)
    yield from (Plant(place, (0.0,), along=tuple(range(inputs[place].dim()))) for place in masks)
    others = [place for place, tensor in enumerate(inputs) if place not in masks and holds_numbers(tensor) and tensor.numel() > 1]
    for place in others:
        axes = range(-1, -inputs[place].dim() - 1, -1) if inputs[place].dim() > 1 else ()
        yield from (Plant(place, (number,), along=(axis,)) for axis in axes for number in (1.0, 0.0))
    yield from bared(inputs, others)
    yield from bared_slices(inputs, others)


def _usual(tensor: torch.Tensor) -> float:
    """One of the whole numbers that an input has, which is not the smallest where there are several."""
    return float(tensor.flatten().sort().values[tensor.numel() // 2])


def _hides(tensor: torch.Tensor) -> bool:
    """Whether an input may say what is left out."""
    return holds_truths(tensor) or not (tensor.is_floating_point() or tensor.is_complex())
