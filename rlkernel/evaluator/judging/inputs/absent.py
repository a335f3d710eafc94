"""Inputs with nothing in them, which show what a reference does where nothing is left.

`(loss * mask).sum() / mask.sum().clamp(min=1)` is zero where a mask leaves nothing, and NaN for who forgets the limit; of
`where(top == 0, 0, range / top)` black pixels show it, and no other numbers. So zeros are planted: in rows of masks and in all of
a mask, and in slices of other inputs along one axis or another. What several inputs make may be nothing only where all of them
are, as `(x - y).norm().clamp(min=1e-6)` is: zeros at the same places of several come last. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from rlkernel.evaluator.judging.inputs.effects import EXTREMES, LIMITS, Effect
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
    """Whether an operator has this effect on a zero that is computed.

    >>> [is_of_nothing(Effect(1, "clamp", side, 1.0)) for side in ("low", "high")]
    [True, False]
    >>> [is_of_nothing(Effect(1, name, "true", 0.0)) for name in ("eq", "lt")]
    [True, False]
    """
    if effect.place is not None or effect.number is None:
        return False
    if effect.name in LIMITS | EXTREMES:
        return effect.side == "low" and effect.number > 0
    shows = _OF_ZERO.get((effect.name, effect.side))
    return shows is not None and shows(effect.number)


def absences(inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Zeros in slices, the mildest first: of masks in rows and then in all of them, of other numbers along each axis, and of
    several inputs at once."""
    masks = [place for place, tensor in enumerate(inputs) if tensor.numel() > 1 and _hides(tensor)]
    yield from (Plant(place, (0.0,), along=(-1,)) for place in masks if inputs[place].dim() > 1)
    yield from (Plant(place, (0.0,), along=tuple(range(inputs[place].dim()))) for place in masks)
    others = [place for place, tensor in enumerate(inputs) if place not in masks and holds_numbers(tensor) and tensor.numel() > 1]
    for place in others:
        axes = range(-1, -inputs[place].dim() - 1, -1) if inputs[place].dim() > 1 else ()
        yield from (Plant(place, (0.0,), along=(axis,)) for axis in axes)
    yield from bared(inputs, others)
    yield from bared_slices(inputs, others)


def _hides(tensor: torch.Tensor) -> bool:
    """Whether an input may say what is left out."""
    return holds_truths(tensor) or not (tensor.is_floating_point() or tensor.is_complex())
