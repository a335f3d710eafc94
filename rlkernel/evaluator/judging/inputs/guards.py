"""Small numbers that a reference adds to something, so that nothing is divided by zero: `root + 1e-8` in a step of RMSprop.

What is guarded may be zero only where several inputs are at once: a moment and its gradient. No draw has that, and one input of
zeros does not show it. So zeros are planted at the same places of all inputs of one shape. What one input shows alone is shown by
rows that are next to nothing (`edges`).

Adafactor guards the mean square of each row, beside a running mean with one number for each. So zeros are planted in whole
slices, too, and in what has one number for each of them. There is a round where the answer without the guard would be another
one, if no other zeros show that.

Of 0 / (0 + 1e-8) it shows whether there is a guard, and not how large it is: in a step of Adam the moment that is divided must
not be zero where the other one and the gradient are. So it is tried, too, to leave out one of these inputs, and there is a round
where a guard four times as large gives something else. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import groupby, islice
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs.bearing import Usual
from rlkernel.evaluator.messages.judgement import Plant
from rlkernel.evaluator.program.operators import base_name, by_name
from rlkernel.evaluator.program.schema import Op, Program

ADD = "add"
MOST = 2.0**-6
"""The largest number that is taken for a guard."""
LARGER = 4.0
MOST_TRIED = 8
"""Inputs that are left out, one after the other."""
MOST_SLICES = 2
"""Rounds with zeros in whole slices: of each axis of a matrix one."""
APART = 1e-2
"""By how much of its norm an output is another one at least."""


def guards(program: Program) -> bool:
    """Whether a reference adds a small number to something."""
    adding = (step for step in program.forward if isinstance(step, Op) and base_name(step.op) == ADD)
    return any(map(is_guard, (number for step in adding for number in (*step.args[1:2], step.kwargs.get("other")))))


def is_guard(number: Any) -> bool:
    """Whether what is added is small enough."""
    return isinstance(number, (int, float)) and 0.0 < abs(number) <= MOST


def bare(operand: torch.Tensor, number: float) -> torch.Tensor:
    """Where nothing that counts stands beside what is added."""
    return operand.abs() <= abs(number)


def bared(inputs: Sequence[torch.Tensor], places: Sequence[int]) -> Iterator[Plant]:
    """Zeros at the same places of all inputs of one shape, of those at these places: single ones, and whole rows."""
    for shape, (first, *others) in _alike(inputs, places):
        if others:
            yield Plant(first, (0.0,), also=tuple(others))
            if len(shape) > 1:
                yield Plant(first, (0.0,), along=(-1,), also=tuple(others))


def _alike(inputs: Sequence[torch.Tensor], places: Sequence[int]) -> Iterator[tuple[torch.Size, list[int]]]:
    """The inputs of each shape, of those at these places."""
    ordered = sorted(places, key=lambda place: tuple(inputs[place].shape))
    yield from ((shape, list(group)) for shape, group in groupby(ordered, key=lambda place: inputs[place].shape))


def bared_but_one(inputs: Sequence[torch.Tensor], places: Sequence[int]) -> Iterator[Plant]:
    """The same single zeros in all inputs of a shape but one."""
    for plant in bared(inputs, places):
        every = (plant.place, *plant.also)
        for left_out in every if len(every) > 2 and not plant.along else ():
            first, *others = (place for place in every if place != left_out)
            yield Plant(first, (0.0,), also=tuple(others))


def bared_slices(inputs: Sequence[torch.Tensor], places: Sequence[int]) -> Iterator[Plant]:
    """Zeros in whole slices of all inputs of one shape, and in those that have one number for each slice: along each axis, the
    last one first."""
    for shape, group in _alike(inputs, places):
        for axis in range(-1, -len(shape) - 1, -1) if len(shape) > 1 else ():
            kept, left = list(shape), list(shape)
            kept[axis] = 1
            del left[axis]
            beside = [place for place in places if list(inputs[place].shape) in (kept, left) and place not in group]
            if beside:
                yield Plant(group[0], (0.0,), along=(axis,), also=(*group[1:], *beside))


class _Resized(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Guards are so many times as large inside."""

    def __init__(self, factor: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._factor = factor

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        options = dict(kwargs or {})
        number: Any = by_name(func, args, options).get("other")
        if base_name(str(func)) == ADD and is_guard(number):
            options.pop("other", None)
            args = (args[0], self._factor * number, *args[2:])
        return func(*args, **options)


def sized(
    usual: Usual, model: nn.Module, inputs: Sequence[torch.Tensor], places: Sequence[int], draw: Callable[[Plant], list[Any]]
) -> list[Plant]:  # fmt: skip
    """What shows how large a guard is, at most one. draw: the arguments of forward with what is planted, which a call may
    change."""
    for plant in islice(bared_but_one(inputs, places), MOST_TRIED):
        if usual.borne(model, draw(plant)) and _matters(usual, model, partial(draw, plant), LARGER):
            return [plant]
    return []


def sliced(
    usual: Usual, model: nn.Module, inputs: Sequence[torch.Tensor], places: Sequence[int], draw: Callable[[Plant], list[Any]],
    known: Sequence[Plant],
) -> list[Plant]:  # fmt: skip
    """What shows that a guard is there with zeros in whole slices, where none of the known ones does."""
    tried = list(islice(bared_slices(inputs, places), MOST_TRIED))
    if not tried or any(_matters(usual, model, partial(draw, plant), 0.0) for plant in known):
        return []
    showing = (plant for plant in tried if usual.borne(model, draw(plant)) and _matters(usual, model, partial(draw, plant), 0.0))
    return list(islice(showing, MOST_SLICES))


def _matters(usual: Usual, model: nn.Module, draw: Callable[[], list[Any]], factor: float) -> bool:
    """Whether something else comes of guards that are so many times as large."""
    found = usual.outputs(model, draw())
    others = usual.outputs(model, draw(), _Resized(factor))
    if found is None or others is None:
        return False
    pairs = [(one.double(), other.double()) for one, other in zip(found, others, strict=False) if one.is_floating_point()]
    return any(_apart(one, other) for one, other in pairs)


def _apart(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two answers are told apart: by their numbers, or by where one is finite."""
    finite = one.isfinite()
    if not torch.equal(finite, other.isfinite()):
        return True
    return float((one - other)[finite].norm()) > APART * float(one[finite].norm())
