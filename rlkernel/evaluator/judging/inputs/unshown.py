"""Operators of a reference whose effect no draw shows, and inputs that show it.

`torch.clamp(x, max=200)` of normal numbers changes none of them, eight times as large or not, and whoever leaves it out would be
right. So the reference is watched while it is called: which limits were reached, which comparisons had both answers. For what was
never seen, a few numbers are planted: large ones where a limit is far away, rows of zeros where it is next to zero, zeros in
several inputs at once where a small number is added to what they make (`guards`), NaN where an input's NaN is replaced, zeros
among lengths and masks where that of a result is, slices of zeros where a reference says what comes of nothing (`absent`), and
the very number to which an input is compared, also where only the side of equal ones is unseen (`met`); or all of an input is
made smaller, as for the limit in `x * torch.clamp(10 / x.norm(), max=1)`. What shows something, and leaves outputs as finite as
they are, is judged in a round of its own. Source: ours.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

import torch
from torch import nn

from rlkernel.evaluator.judging.inputs import tries
from rlkernel.evaluator.judging.inputs.agreeing import move_toward
from rlkernel.evaluator.judging.inputs.bearing import Usual, usual_call
from rlkernel.evaluator.judging.inputs.effects import (
    IGNORED,
    IGNORES,
    LATER,
    WATCHED,
    Effect,
    Watching,
)
from rlkernel.evaluator.judging.inputs.guards import ADD, guards, sized, sliced
from rlkernel.evaluator.judging.inputs.little import resized
from rlkernel.evaluator.judging.inputs.met import MEETING, met_by, met_of
from rlkernel.evaluator.judging.inputs.moved import flat_parameters, free_parameters, move_state
from rlkernel.evaluator.judging.inputs.sowing import planted
from rlkernel.evaluator.judging.inputs.stress import stressed, stresses
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import holds_truths, tensors_of
from rlkernel.evaluator.messages.judgement import Met, Moved, Plant, Resized, Stress
from rlkernel.evaluator.program.operators import operators_of
from rlkernel.evaluator.program.schema import Program

MOST_CALLS = 24
"""Calls of a reference in which numbers are planted."""
MOST_PLANTS = 3
"""Rounds with planted numbers."""
MOST_ABSENT, MOST_ABSENT_PLANTS = 16, 2
"""The same of inputs with nothing in them."""
SHOWING = WATCHED | MEETING
"""Operators of which something may be planted."""
_Kind = Callable[[Effect, Sequence[torch.Tensor]], Iterable[Plant | Resized | Moved]]
UNSHOWN = "numbers among its inputs that an operator is for"
"""Stands behind a miss in such a round."""


class Among(Enum):
    """The inputs that may get numbers which no draw has."""

    ALL = "all"
    REAL = "real"
    """Those of real numbers, and parameters: whole numbers may be looked up in a table."""
    WHOLE = "whole"
    """Those of whole numbers and truth values alone."""


def may_hide(program: Program, source: str) -> bool:
    """Whether a reference calls an operator that is watched. What losses ignore is theirs where the text says so."""
    names = operators_of(program)
    return bool(names & (SHOWING - IGNORES)) or guards(program) or (bool(names & IGNORES) and "ignore_index" in source)


def plants_of(
    reference: SeededReference, source: str, *, among: Among = Among.ALL, until: float = math.inf
) -> tuple[Plant | Met | Resized | Moved, ...]:
    """What shows effects of operators that no draw does, `among` these inputs. No further plant is tried after `until`, on the
    monotonic clock. Whatever the reference raises at its own inputs is raised."""
    model = reference.model(0)
    effects = _never_seen(reference, model)
    missing = dict.fromkeys(sorted(effects, key=lambda one: (one.call, one.side)))
    if "ignore_index" not in source:
        of_losses = IGNORED if str(int(IGNORED)) not in source else None
        missing = {one: None for one in missing if one.name not in IGNORES and not (one.whole and one.number == of_losses)}
    usual, given = usual_call(model, reference.inputs(0)), tensors_of(reference.inputs(0))
    flat = flat_parameters(reference, model)
    matrices = {name: t for name, t in free_parameters(reference, model).items() if t.dim() > 1}
    # What is rarer comes last, because the calls are few.
    kinds: tuple[_Kind, ...] = (
        tries.usual,
        tries.smaller,
        lambda effect, _: tries.moved(effect, flat),
        lambda effect, inputs: tries.agreeing_rows(effect, inputs, matrices),
        lambda effect, inputs: tries.between(effect, missing, inputs),
        tries.near,
    )
    search = _Search(reference, model, usual, given, missing, among, until)
    found = search.shown(kinds, MOST_CALLS, MOST_PLANTS)
    empty = search.shown((tries.absent,), MOST_ABSENT, MOST_ABSENT_PLANTS)
    if among is Among.WHOLE:
        return (*found, *empty)
    met = met_of(
        reference, model, usual,
        lambda given, what: planted(given, what, 0) if isinstance(what, Plant) else met_by(given, what, 0),
    )  # fmt: skip
    of_numbers = (what for what in met if not holds_truths(given[what.place]))
    guarded = time.monotonic() < until and any(effect.name == ADD for effect in effects)
    sizes, slices = list[Plant](), list[Plant]()
    if guarded:
        draw, places = lambda what: planted(reference.inputs(0), what, 0), tries.of_numbers(given)
        sizes = sized(usual, model, given, places, draw)
        slices = sliced(usual, model, given, places, draw, [one for one in (*found, *sizes) if isinstance(one, Plant)])
    return (*found, *itertools.islice(of_numbers, MOST_PLANTS - len(found)), *sizes, *slices, *empty)


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks among what may be planted for what shows effects that are `missing`, from which it takes those that it finds."""

    reference: SeededReference
    model: nn.Module
    usual: Usual
    given: Sequence[torch.Tensor]
    """The tensors among the arguments of the `usual` call."""
    missing: dict[Effect, None]
    among: Among
    until: float
    called: dict[Plant | Resized | Moved, set[Effect]] = field(default_factory=dict)
    """What was tried, and the effects that there were."""

    def shown(self, kinds: Sequence[_Kind], calls: int, most: int) -> list[Plant | Resized | Moved]:
        """What shows one of the missing effects at least, of what these kinds try. What several ask for is called once."""
        before, found = len(self.called), list[Plant | Resized | Moved]()
        for effect, plant in self._tried(kinds):
            if effect not in self.missing or plant in found:
                continue
            if plant not in self.called:
                if len(self.called) - before == calls:
                    break
                self.called[plant] = self._seen_with(plant)
            if effect in self.called[plant]:
                found.append(plant)
                for seen in self.called[plant] & self.missing.keys():
                    del self.missing[seen]
            if len(found) == most or time.monotonic() > self.until:
                break
        return found

    def _tried(self, kinds: Sequence[_Kind]) -> Iterator[tuple[Effect, Plant | Resized | Moved]]:
        """Each effect that is missing still, and what may show it."""
        for later in (False, True):
            for tried in kinds:
                for effect in tuple(self.missing):
                    if effect not in self.missing or (effect.name in LATER) != later:
                        continue
                    for plant in tried(effect, self.given):
                        if self._may(effect, plant):
                            yield effect, plant

    def _may(self, effect: Effect, plant: Plant | Resized | Moved) -> bool:
        """Whether a plant is among those that are looked for. Labels that losses ignore are looked up nowhere."""
        real = plant.place is None or self.given[plant.place].is_floating_point()
        if self.among is Among.WHOLE:
            return not real
        return real or self.among is Among.ALL or effect.name in IGNORES

    def _seen_with(self, plant: Plant | Resized | Moved) -> set[Effect]:
        """The effects that there are with a plant; none where the reference does not bear it."""
        drawn, model = self.reference.inputs(0), self.model
        inputs = planted(drawn, plant, 0) if isinstance(plant, Plant) else drawn
        inputs = resized(drawn, plant) if isinstance(plant, Resized) else inputs
        if isinstance(plant, Moved):
            model = move_state(self.reference.model(0), plant)
        elif isinstance(plant, Plant) and plant.toward:
            model = move_toward(self.reference.model(0), plant)
        watching = Watching(tensors_of(inputs))
        return watching.seen if self.usual.borne(model, inputs, watching) else set()


def _never_seen(reference: SeededReference, model: nn.Module) -> set[Effect]:
    """The effects that there may be, and were not at usual inputs, nor at those of the hardest round."""
    possible, seen = set[Effect](), set[Effect]()
    for seed in (0, 1, 2):
        inputs = reference.inputs(seed)
        if seed == 2:
            inputs = stressed(inputs, next(iter(stresses(inputs)), Stress.NONE))
        watching = Watching(tensors_of(inputs))
        if seed < 2:
            usual = usual_call(model, inputs, watching)
        elif not usual.ends(model, inputs, watching):
            break
        possible, seen = possible | watching.possible, seen | watching.seen
    return possible - seen
