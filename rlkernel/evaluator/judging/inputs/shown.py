"""What is done to the inputs of a round of its own, so that it shows what no draw does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from rlkernel.evaluator.judging.inputs.agreeing import move_toward
from rlkernel.evaluator.judging.inputs.emptied import EMPTY, emptied
from rlkernel.evaluator.judging.inputs.enlarged import LARGER, enlarged
from rlkernel.evaluator.judging.inputs.equals import MEET, TIES, repeated
from rlkernel.evaluator.judging.inputs.labels import LIKELY, labelled
from rlkernel.evaluator.judging.inputs.little import NOTE, resized
from rlkernel.evaluator.judging.inputs.met import met_by
from rlkernel.evaluator.judging.inputs.moved import NOTE as MOVED
from rlkernel.evaluator.judging.inputs.moved import move_state, with_moved
from rlkernel.evaluator.judging.inputs.one_sided import NOTE as ONE_SIDED
from rlkernel.evaluator.judging.inputs.one_sided import side_weights, with_one_sided
from rlkernel.evaluator.judging.inputs.planting import PLANTED
from rlkernel.evaluator.judging.inputs.planting import planted as with_numbers_of_arguments
from rlkernel.evaluator.judging.inputs.pressed import NOTE as PRESSED
from rlkernel.evaluator.judging.inputs.pressed import pressed
from rlkernel.evaluator.judging.inputs.sowing import planted
from rlkernel.evaluator.judging.inputs.tries import LARGE
from rlkernel.evaluator.judging.inputs.unshown import UNSHOWN
from rlkernel.evaluator.messages.judgement import (
    Emptied,
    Enlarged,
    Labelled,
    Met,
    Moved,
    OneSided,
    Plant,
    Planting,
    Pressed,
    Repeated,
    Resized,
)


def put(what: Planting, inputs: list[Any], seed: int) -> list[Any]:
    """The arguments of forward after it, in which what is drawn comes from `seed`."""
    if isinstance(what, Plant):
        return planted(inputs, what, seed)
    if isinstance(what, Met):
        return met_by(inputs, what, seed)
    if isinstance(what, Repeated):
        return repeated(inputs, what, seed)
    if isinstance(what, Pressed):
        return pressed(inputs, what)
    if isinstance(what, Labelled):
        return labelled(inputs, what, seed)
    if isinstance(what, Emptied):
        return emptied(inputs, what, seed)
    if isinstance(what, Enlarged):
        return enlarged(inputs, what, seed)
    if isinstance(what, OneSided):
        return with_one_sided(inputs)
    if isinstance(what, Moved):
        return with_moved(inputs, what)
    return resized(inputs, what) if isinstance(what, Resized) else with_numbers_of_arguments(inputs, seed)


def put_in_state(what: Planting | None, model: nn.Module, fixed: Sequence[str]) -> nn.Module:
    """The module after it. fixed: patterns of the names that keep what they hold."""
    if isinstance(what, Moved):
        return move_state(model, what)
    if isinstance(what, Plant):
        return move_toward(model, what)
    return side_weights(model, fixed) if isinstance(what, OneSided) else model


def note_of(what: Planting) -> str:
    """What stands behind a miss in such a round."""
    if isinstance(what, (Plant, Met)):
        return UNSHOWN
    if isinstance(what, Repeated):
        return TIES if what.axis is None else MEET
    if isinstance(what, Pressed):
        return PRESSED
    if isinstance(what, Labelled):
        return LIKELY
    if isinstance(what, Emptied):
        return EMPTY
    if isinstance(what, Enlarged):
        return LARGER
    if isinstance(what, OneSided):
        return ONE_SIDED
    if isinstance(what, Moved):
        return MOVED
    return NOTE if isinstance(what, Resized) else PLANTED


def must_be_exact(what: Planting) -> bool:
    """Whether such a round counts only where the reference errs as little in it as usually: what recurs may grow once it keeps,
    and what is rounded with it; and of numbers that are nearly alike hardly anything but an order may be asked."""
    return isinstance(what, (Moved, Pressed))


def meant(what: Planting | None) -> tuple[float, ...]:
    """The numbers among the inputs that are meant as they are, and not as what they were rounded from: those that are planted,
    but for large ones, which only lie beyond a limit."""
    return tuple(number for number in what.values if abs(number) < LARGE) if isinstance(what, Plant) else ()


def held(what: Planting | None) -> tuple[int, ...]:
    """The places of the inputs of which all numbers are meant so, because those of one are those of the other."""
    return (what.place, what.other) if isinstance(what, Met) else ()
