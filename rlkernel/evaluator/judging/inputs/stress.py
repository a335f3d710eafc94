"""Inputs that a problem's author would not draw: scaled, shifted where they lie about zero or on one side of it, uneven, and
several numbers where the author has one. Numbers that are truth values, zeros and ones alone, stay so.

What is done to each tensor is decided by a look at its values (`changes`), for which a GPU is waited for. It holds for every draw
of the problem, so the look is taken once, and `changed` waits for nothing. Source: ours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import torch

from rlkernel.evaluator.judging.inputs.edges import edged
from rlkernel.evaluator.judging.inputs.fixed import MASKS, may_be_fixed, moved_on, rows_set_apart, set_apart, turned_around
from rlkernel.evaluator.judging.inputs.unevenness import holds_shares, stands_in_order, uneven
from rlkernel.evaluator.judging.references.reference_calls import holds_truths, is_constant, mapped, tensors_of
from rlkernel.evaluator.messages.judgement import NOWHERE, Edge, Places, Stress
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.tensors import extent

STRESS = 8.0
"""Factor on floating-point inputs in a stressed round."""
LESS = 3.0
"""The same where the reference does not bear that: whoever cuts scores off at 20 is wrong, and whoever takes the exponential of
all that 8 times what is drawn makes is right."""
LEAST = 1.5
"""The same where the reference does not bear that either."""
STRESS_NOTES: dict[Stress, tuple[str, ...]] = {
    Stress.NONE: (),
    Stress.VARIED: (),
    Stress.SCALED: (f"inputs scaled by {STRESS:g}",),
    Stress.LESS: (f"inputs scaled by {LESS:g}",),
    Stress.LEAST: (f"inputs scaled by {LEAST:g}",),
    Stress.SHIFTED: (f"inputs scaled by {STRESS:g} and shifted",),
    Stress.UNEVEN: (f"inputs scaled by {STRESS:g}, shifted and uneven",),
    Stress.EXTREME: (f"inputs scaled by {STRESS:g}, shifted and uneven, with rows that are tiny or below zero",),
}
"""What stands behind a miss in a round under stress."""
OF_ONE_VALUE = "inputs of one value at others"
ALWAYS_SAME = "inputs that are always the same at others"
APART = "copies of inputs that differ from these"
OTHER_PARAMETERS = "parameters at other values"
"""What stands behind a miss besides."""
LOPSIDED = 4.0
"""How much farther an input with both signs may reach to one side of zero than to the other, so as to be shifted."""
OFF_CENTRE = 2.0**-7
"""How far beside zero an input is centred, in halves of its size. A sum of four million numbers is then eight times as large as
one of random signs is, and one of a product's 4,096 is hardly larger, so that half precision errs in it as ever."""

ORDERED = 8
"""The least length of rows whose order is no chance."""
HOLES = -0.35
"""Numbers of a wave between -1/2 and 1/2 below which a mask gets a hole: a quarter of them."""
UNSCALED = (Stress.NONE, Stress.VARIED)
"""Those in which inputs are as large as they are drawn."""
UNEVEN = (Stress.EXTREME, Stress.UNEVEN)
"""Those in which numbers differ in size from place to place."""
SHIFTED = (*UNEVEN, Stress.SHIFTED)
"""Those in which inputs are shifted."""


class Side(Enum):
    """Where an input's numbers lie, if they can be shifted."""

    ONE = "one"
    """None is negative."""
    TWO = "two"
    """They lie about as far on both sides of zero. A mean that is left out is hardly missed in these: of 16,384 normal numbers it
    is 0.008."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to one tensor."""

    side: Side | None = None
    """Where its numbers lie, if it is shifted."""
    shift: float = 0.0
    """What is added to it, once it is centred where it is one-sided."""
    ordered: bool = False
    """Whether its numbers rise or fall along the last axis, so that zeros among them are shifted, too."""
    replaced: bool = False
    """Whether other numbers stand in its place, because it holds zeros alone: whoever ignores it would be right."""
    varied: bool = False
    """Whether it gets several numbers, because it holds one throughout."""
    holed: bool = False
    """Whether it is a mask that gets holes, or whole numbers that are all the same and get others, and nothing else is done to
    it."""
    turned: bool = False
    """Whether its elements are turned around along an axis before, because they are the same in each draw."""
    moved: bool = False
    """Whether it holds places that lie one farther, and nothing else is done to it."""
    apart: int = 0
    """How many places on its slices stand before, because it is a copy of an earlier input."""
    rows: bool = False
    """Whether its rows, which are copies of each other, are set apart, too."""
    uneven: bool = False
    """Whether its numbers differ in size from place to place."""
    edge: Edge | None = None
    """Which rows of what is uneven are tiny or below zero, if any are."""
    scale: float = STRESS
    """What it is multiplied by then, if other numbers do not stand in its place."""


def stresses(inputs: list[Any]) -> tuple[Stress, ...]:
    """What can be done to such arguments of forward, the hardest first, without the rows that `drawing.py` adds. A GPU is waited
    for."""
    tensors = tensors_of(inputs)
    shifted = any(map(side, tensors))
    found = (Stress.UNEVEN, Stress.SHIFTED) if shifted else ()
    floats = any(map(holds_numbers, tensors))
    return (
        *found,
        *(Stress.SCALED,) * floats,
        *(Stress.VARIED,) * any(is_mask(t) or holds_one(t) or all_zero(t) or may_be_fixed(t) for t in tensors),
    )


def stressed(inputs: list[Any], stress: Stress, places: Places = NOWHERE) -> list[Any]:
    """Floating-point inputs, also those in lists and dicts, scaled or shifted, and several numbers in place of one alone; codes
    are left as they are. places: what is done to single tensors, see `places.py`. A GPU is waited for."""
    return changed(inputs, changes(inputs, stress, places))


def changes(inputs: list[Any], stress: Stress, places: Places = NOWHERE) -> tuple[Change | None, ...]:
    """What is done to each tensor among the inputs; None where it stays. A GPU is waited for."""

    def of(place: int, tensor: torch.Tensor) -> Change | None:
        if stress is not Stress.NONE and place in places.holed:
            return Change(holed=True)
        if stress is not Stress.NONE and place in places.moved:
            return Change(moved=True)
        found = _change(tensor, stress) if holds_numbers(tensor) and place not in places.kept else None
        if stress is not Stress.NONE and place in places.turned:
            return replace(found or Change(scale=1.0), turned=True)
        found = found and replace(found, uneven=stress in UNEVEN and place in places.drawn)
        if stress is not Stress.NONE and place in (*places.apart, *places.rows):
            steps = 1 + places.apart.index(place) if place in places.apart else 0
            return replace(found or Change(scale=1.0), apart=steps, rows=place in places.rows)
        return found

    found = tuple(of(place, tensor) for place, tensor in enumerate(tensors_of(inputs)))
    return with_edges(found, places.edges) if stress is Stress.EXTREME else found


def varies(inputs: list[Any], stress: Stress, places: Places = NOWHERE) -> bool:
    """Whether some of these inputs would differ from what is drawn though nothing were scaled: masks without a hole, numbers that
    are all the same, or what is the same in each draw. A GPU is waited for."""
    return stress is not Stress.NONE and any(one is not None for one in changes(inputs, Stress.VARIED, places))


def with_edges(found: Sequence[Change | None], edges: Sequence[Edge]) -> tuple[Change | None, ...]:
    """These changes, with such rows besides."""
    of = {edge.place: edge for edge in edges}
    return tuple(one and replace(one, edge=of.get(place)) for place, one in enumerate(found))


def _change(tensor: torch.Tensor, stress: Stress) -> Change | None:
    if stress is Stress.NONE:
        return None
    if holds_truths(tensor):
        return None
    zeros = all_zero(tensor)
    if zeros or holds_one(tensor):
        return Change(replaced=zeros, varied=True, scale=_scale(stress))
    lies = side(tensor) if stress in SHIFTED else None
    if lies is None:
        return None if stress is Stress.VARIED else Change(scale=_scale(stress))
    # A sum over what is centred altogether would be nothing but roundings.
    shift = half_size(tensor) if lies is Side.TWO else OFF_CENTRE * half_size(tensor - _mean(tensor))
    return Change(lies, shift, ordered=tensor.shape[-1] >= ORDERED and stands_in_order(tensor))


def _scale(stress: Stress) -> float:
    """What inputs are multiplied by."""
    return {Stress.VARIED: 1.0, Stress.LESS: LESS, Stress.LEAST: LEAST}.get(stress, STRESS)


def changed(inputs: list[Any], found: Sequence[Change | None]) -> list[Any]:
    """The inputs after these changes, one for each tensor. Nothing is waited for, unless one is turned around or its rows are set
    apart."""
    places = itertools.count()

    def change(tensor: torch.Tensor) -> torch.Tensor:
        place = next(places)
        what = found[place] if place < len(found) else None  # another draw may have more tensors
        return tensor if what is None else _changed(tensor, what)

    return [mapped(value, change) for value in inputs]


def _changed(tensor: torch.Tensor, what: Change) -> torch.Tensor:
    if what.holed:
        return holed(tensor)
    if what.moved:
        return moved_on(tensor)
    if what.turned:
        return _changed(turned_around(tensor), replace(what, turned=False)) if what.scale != 1.0 else turned_around(tensor)
    if what.rows:
        return _changed(rows_set_apart(tensor, what.apart), replace(what, apart=0, rows=False))
    if what.apart:
        if what.replaced or what.varied:  # what stands in its place is the copy's, too
            made = _changed(tensor, replace(what, apart=0))
            return set_apart(made.flatten(), what.apart).view(made.shape)
        return _changed(set_apart(tensor, what.apart), replace(what, apart=0))
    if what.replaced:
        return wave_like(tensor, positive=True)  # zeros are often sums of squares, of which a root is taken
    made = tensor * (1.0 + wave_like(tensor)) if what.varied else _moved(tensor, what)
    if not what.uneven:
        return made * what.scale if what.scale != 1.0 else made
    made = uneven(made.clone() if made is tensor else made, what.scale)
    return made if what.edge is None else edged(made, what.edge)


def _moved(tensor: torch.Tensor, what: Change) -> torch.Tensor:
    if what.side is None:
        return tensor
    shift = what.shift if what.side is Side.TWO else what.shift - _mean(tensor)
    if what.ordered:  # of 25 million sorted numbers one or two are zero by chance, and would be out of order
        return tensor + shift
    # Zeros are part of the problem, such as one half of a triangular matrix.
    if what.side is Side.TWO:
        return torch.add(tensor, tensor != 0, alpha=what.shift)
    return (tensor + shift).masked_fill_(tensor == 0, 0)


def _mean(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.mean(dtype=torch.float32).to(tensor.dtype)


def all_zero(tensor: torch.Tensor) -> bool:
    """Whether an input holds floating-point zeros and nothing else: whoever ignores it would be right. A GPU is waited for."""
    return holds_numbers(tensor) and tensor.numel() > 0 and not bool((tensor != 0).any())


def holds_one(tensor: torch.Tensor) -> bool:
    """Whether an input holds one floating-point number throughout, which is no mask's: whoever ignores it may be right, as the
    weights of a mean. A GPU is waited for."""
    return holds_numbers(tensor) and tensor.numel() > 1 and is_constant(tensor, two=False)


def is_mask(tensor: torch.Tensor) -> bool:
    """Whether an input holds truth values that are all the same, or whole numbers that are, and not negative: a mask without a
    hole, lengths that leave nothing out, or indices that all name the first row, which may be ignored; so may a single number, a
    position. A GPU is waited for, on which a number that an operator refuses is no error that leaves the process whole, so that
    only several ones are a mask there."""
    if tensor.numel() < (1 if tensor.device.type == "cpu" else 2) or tensor.dtype not in MASKS:
        return False
    low, high = tensor.byte().aminmax() if tensor.dtype is torch.bool else tensor.aminmax()
    borne = low >= 0 if tensor.device.type == "cpu" else low == 1
    return bool(low == high) and (tensor.dtype is torch.bool or bool(borne))


def all_first(tensor: torch.Tensor) -> bool:
    """Whether an input holds whole numbers that are all zero. A GPU is waited for."""
    return tensor.dtype in MASKS and tensor.dtype is not torch.bool and tensor.numel() > 0 and not bool(tensor.any())


def holed(tensor: torch.Tensor) -> torch.Tensor:
    """A mask with about a quarter of its elements turned, or so many of its whole numbers halved, or 1 if they are zeros, at
    places that depend on their place in memory alone; the only element, if there is one. Halves of several are odd, so that
    lengths fill no blocks.

    >>> holed(torch.full((6,), 256)), holed(torch.tensor([256]))
    (tensor([256, 256, 256, 129, 129, 256]), tensor([128]))
    """
    turned = torch.ones_like(tensor, dtype=torch.bool) if tensor.numel() == 1 else wave_like(tensor.float()) < HOLES
    if tensor.dtype is torch.bool:
        return tensor ^ turned
    half = torch.div(tensor, 2, rounding_mode="floor")
    if tensor.numel() > 1:
        half += (half > 0) & (half % 2 == 0)
    return torch.where(turned, torch.where(tensor == 0, torch.ones_like(tensor), half), tensor)


def wave_like(tensor: torch.Tensor, *, positive: bool = False) -> torch.Tensor:
    """Different numbers between -1/2 and 1/2, or between 0 and 1/2, that depend on their place in memory alone, in a tensor that
    lies as the given one does: what shares memory there, as the rows of an expanded tensor do, is equal here."""
    count = extent(tensor.shape, tensor.stride())
    wave = torch.arange(1, count + 1, dtype=torch.float32, device=tensor.device).sin_().mul_(0.5)
    wave = wave.abs_() if positive else wave
    return wave.to(tensor.dtype).as_strided(tensor.shape, tensor.stride())


def side(value: Any) -> Side | None:
    """Where the numbers of an input lie. None for what is no tensor, and for a mask, whole numbers, codes, and shares, which may
    be added up to where a number falls. A GPU is waited for."""
    if not (isinstance(value, torch.Tensor) and holds_numbers(value) and value.numel() > 1):
        return None
    low, high = torch.stack(value.aminmax()).tolist()
    both = low < 0.0 and math.isfinite(low) and math.isfinite(high) and high <= -LOPSIDED * low and -low <= LOPSIDED * high
    if not (both or low >= 0.0) or bool((value == value.round()).all()) or (not both and holds_shares(value)):
        return None
    return Side.TWO if both else Side.ONE


def half_size(tensor: torch.Tensor) -> float:
    """Half of a tensor's root mean square, rounded to a power of two, so that the same numbers always give the same one."""
    size = root_mean_square(tensor)
    return 0.5 * 2.0 ** round(math.log2(size)) if 0.0 < size < math.inf else 0.0


def root_mean_square(tensor: torch.Tensor) -> float:
    """The root mean square of a tensor's numbers, computed in float32 at least; 0 of none. A GPU is waited for."""
    wide = torch.promote_types(tensor.dtype, torch.float32)
    return float(torch.linalg.vector_norm(tensor, dtype=wide)) / math.sqrt(max(1, tensor.numel()))
