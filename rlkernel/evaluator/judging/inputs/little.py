"""Inputs that a reference reads and that hardly matter, and sizes at which they do.

Of `w - 1e-5 * g` the gradient is what float32's tolerance hides, and whoever returns `w` would be right. So each input is drawn
anew beside the others, and where an output then moves by less than could be told, that input is made larger, or another one
smaller, until it moves by about a half. Steps that are normed, as Adam's are, are as large for any gradient: there the weights
are made smaller. What shows something is judged in a round of its own. Single numbers are others there: of an optimiser's step or
its rate hardly more is to be seen elsewhere. Source: ours.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from rlkernel.evaluator.judging.errors.comparison import bits
from rlkernel.evaluator.judging.errors.tolerance import FLOOR
from rlkernel.evaluator.judging.inputs.bearing import usual_call
from rlkernel.evaluator.judging.inputs.stress import root_mean_square
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import (
    call,
    exact_with_state,
    holds_truths,
    mapped,
    mapped_at,
    tensors_of,
)
from rlkernel.evaluator.messages.judgement import Resized
from rlkernel.evaluator.program.codes import holds_numbers

TELLS = 0.02
"""The share of an output by which it moves where an input matters; tf32 may miss by no more."""
FLOORS = 5.0
"""How many floors of its dtype an output moves by at least where an input matters."""
SHOWN = 0.1
"""The share of an output by which it moves where an input was made to matter."""
GOAL = 0.5
"""What is aimed at: much less is hidden, and much more would hide the other inputs."""
MOST_FACTOR = 2.0**40
"""The most by which an input is made larger or smaller. What needs more is a rounding."""
MOST = 8
"""The most inputs that are looked at, each of which costs two calls in float64."""
MOST_ELEMENTS = 1 << 18
"""The most elements that all inputs have together: a product of larger ones takes seconds in float64."""
MOST_ON_GPU = 1 << 26
"""The same on a GPU."""
MOST_ROUNDS = 3
"""Rounds with an input of another size."""
NOTE = "an input at another size"
"""Stands behind a miss in such a round."""


def resized(inputs: list[Any], change: Resized) -> list[Any]:
    """The arguments of forward in which one input has another size."""
    found = mapped_at(inputs, change.place, lambda tensor: tensor * change.factor)
    for place in change.numbers:
        found = mapped_at(found, place, other_number)
    return found


def other_number(tensor: torch.Tensor) -> torch.Tensor:
    """Half as much again as a single number, and a half in place of zero.

    >>> other_number(torch.tensor(2.0)), other_number(torch.zeros(1))
    (tensor(3.), tensor([0.5000]))
    """
    return torch.where(tensor == 0, torch.full_like(tensor, 0.5), 1.5 * tensor)


class _Moving:
    """How far a reference's results move where one of its inputs is drawn anew."""

    def __init__(self, reference: SeededReference) -> None:
        self._reference, self._model = reference, reference.model(0)
        self._usual = usual_call(copy.deepcopy(self._model), reference.inputs(0))
        inputs = reference.inputs(0)
        given = [tensor.clone() for tensor in tensors_of(inputs)]
        self.dtypes = [tensor.dtype for tensor in tensors_of(call(copy.deepcopy(self._model), inputs, 0))]
        pairs = zip(tensors_of(inputs), given, strict=True)
        self._written = tuple(place for place, (now, was) in enumerate(pairs) if not torch.equal(bits(now), bits(was)))
        self.dtypes += [given[place].dtype for place in self._written]

    def _results(self, inputs: list[Any], exactly: bool) -> list[torch.Tensor]:
        """What a call returns, and the arguments that it changes, in float64 if they are asked for exactly."""
        model = copy.deepcopy(self._model)
        found = exact_with_state(model, inputs, 0, (), self._written) if exactly else None
        if found is None:
            mine = mapped(inputs, torch.clone)
            found = tensors_of(call(copy.deepcopy(self._model), mine, 0))
            found += [tensors_of(mine)[place] for place in self._written]
        return found

    def bears(self, change: Resized, place: int, result: int) -> bool:
        """Whether the outputs are as finite after a change as usual, in their own dtypes, and a result moves with the input at
        `place`."""
        try:
            small = tensors_of(resized(self._reference.inputs(0), change))[change.place]
            if root_mean_square(small) < torch.finfo(small.dtype).tiny:
                return False
            if not self.borne(change):
                return False
            return SHOWN <= self.by(place, change, exactly=False)[result] < math.inf
        except Exception:  # a reference may refuse such inputs in its own way
            return False

    def borne(self, change: Resized) -> bool:
        """Whether the outputs are as finite after a change as usual."""
        return self._usual.borne(copy.deepcopy(self._model), lambda: resized(self._reference.inputs(0), change))

    def by(self, place: int, change: Resized | None = None, *, exactly: bool = True) -> list[float]:
        """The share of each result by which it moves when the input at `place` is another draw, or another number where it is a
        single one, both changed so; infinite where nothing is known of it."""
        usual, other = self._reference.inputs(0), tensors_of(self._reference.inputs(1))
        if place >= len(other) or other[place].shape != tensors_of(usual)[place].shape:
            return [math.inf] * len(self.dtypes)
        single = other[place].numel() == 1
        moved = mapped_at(self._reference.inputs(0), place, other_number if single else lambda _: other[place])
        if change is not None:
            usual, moved = resized(usual, change), resized(moved, change)
        return [*map(_distance, self._results(usual, exactly), self._results(moved, exactly))]


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """How far the elements that move do, relative to their size: those that a mask fills with -1e9 say nothing of the others."""
    if one.shape != other.shape or not (holds_numbers(one) and holds_numbers(other)):
        return math.inf
    moved = one != other
    if not bool(moved.any()):
        return 0.0
    before, after = one[moved].double(), other[moved].double()
    size = float(torch.linalg.vector_norm(before))
    found = float(torch.linalg.vector_norm(before - after)) / size if size else math.inf
    return found if math.isfinite(found) else math.inf


def resized_of(reference: SeededReference) -> tuple[Resized, ...]:
    """What makes the inputs matter that hardly do. Whatever the reference raises at its own inputs is raised."""
    given = tensors_of(reference.inputs(0))
    places = [place for place, tensor in enumerate(given) if holds_numbers(tensor) and tensor.numel() > 1]
    singles = [place for place, tensor in enumerate(given) if holds_numbers(tensor) and tensor.numel() == 1]
    alone = len(places) + len(singles) == 1 and next(reference.model(0).parameters(), None) is None
    if alone or not 0 < len(places) <= MOST or sum(tensor.numel() for tensor in given) > _most(given[0].device):
        return ()
    moving, found = _Moving(reference), list[Resized]()
    sizes = [place for place in places if not holds_truths(given[place])]
    moves = {place: moving.by(place) for place in (*places, *singles[:MOST])}
    for place, shares in moves.items():
        for result, share in enumerate(shares):
            if not _hidden(share, moving.dtypes[result]) or any(moving.bears(one, place, result) for one in found):
                continue
            if len(found) < MOST_ROUNDS:
                tried = (one for one in _tried(place, sizes, share) if moving.bears(one, place, result))
                found += [one for one in (next(tried, None),) if one is not None]
    numbers = tuple(place for place in singles[:MOST] if any(0 < share < math.inf for share in moves[place]))
    return tuple(_with_others(moving, one, numbers) for one in found)


def _with_others(moving: _Moving, change: Resized, numbers: tuple[int, ...]) -> Resized:
    """The same with other single numbers besides, where that is borne: a step that each draw gives may be baked into a kernel,
    and hardly matters where weights are as large as usual."""
    try:
        changed = replace(change, numbers=numbers)
        return changed if numbers and moving.borne(changed) else change
    except Exception:  # a reference may refuse such inputs in its own way
        return change


def _most(device: torch.device) -> int:
    return MOST_ELEMENTS if device.type == "cpu" else MOST_ON_GPU


def _hidden(share: float, dtype: torch.dtype) -> bool:
    """Whether such a move of a result is too small to be told, and more than a rounding of float64."""
    return GOAL / MOST_FACTOR < share < max(TELLS, FLOORS * FLOOR.get(dtype, 0.0))


def _tried(place: int, places: Sequence[int], share: float) -> Iterator[Resized]:
    """The input itself larger, and the others smaller, of those that have a size."""
    factor = 2.0 ** round(math.log2(GOAL / share))
    if place in places:
        yield Resized(place, factor)
    yield from (Resized(other, 1.0 / factor) for other in places if other != place)
