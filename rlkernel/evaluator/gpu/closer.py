"""The second look at one call that misses by size alone: by the reference's own error on these very inputs and weights.

They may be worse conditioned than those of the study. Example: batch norms of two rows that are nearly alike, one behind the
other, magnify every rounding, and by how much depends on the draw. A few whole numbers that are others are right where roundings
decide them (`wavering.py`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.gpu.exact import measured
from rlkernel.evaluator.judging.errors.comparison import Match, compare_tensor
from rlkernel.evaluator.judging.errors.error_passes import ByTorch, Measure
from rlkernel.evaluator.judging.errors.jumping import right_by_some
from rlkernel.evaluator.judging.errors.own_error import UNSTEADY, OwnError, steady
from rlkernel.evaluator.judging.errors.several_right import compare_with_any
from rlkernel.evaluator.judging.errors.tolerance import beside, of_state, tolerance
from rlkernel.evaluator.judging.errors.wavering import OtherRoundings, some_give
from rlkernel.evaluator.judging.references.flags import judging
from rlkernel.evaluator.judging.references.reference_calls import mapped, tensors_of
from rlkernel.evaluator.judging.references.widening import FINER, WAYS, Way
from rlkernel.evaluator.messages.judgement import Planting, Tolerance
from rlkernel.evaluator.program.codes import equal_or_wrong
from rlkernel.evaluator.program.tensors import overlapping
from rlkernel.types import Precision

AFTER = "{name} after forward"
"""How a miss names a parameter or buffer that forward changes."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A parameter or buffer that the reference's forward changes, after one call."""

    found: torch.Tensor
    """The candidate's."""
    wanted: torch.Tensor
    """The reference's."""
    allowed: Tolerance
    """What the study allows in such a round."""


@dataclass(frozen=True, slots=True)
class Call:
    """The call of the reference that a candidate's call is held against."""

    model: nn.Module
    """As it was before the call, and it stays so."""
    inputs: list[Any]
    seed: int
    """What forward draws from."""
    expected: Any
    """What it returned, see `flags.judging`."""
    shown: Planting | None = None
    """What was done to the inputs, so that they show something."""


@dataclass(frozen=True, slots=True)
class _Side:
    """One tensor of a call, with what is known of it."""

    found: torch.Tensor
    wanted: torch.Tensor
    exact: torch.Tensor
    own: OwnError
    where: str
    choices: tuple[torch.Tensor, ...] = ()
    """What tensor cores make of it, where that is something else."""

    def match(self, allowed: Tolerance, precision: Precision) -> Match:
        """Compare with the float64 result where that is the same function, else with the reference, beside which float64's is
        right, too, as is what tensor cores choose otherwise."""
        steadily, same = self.own.steady, self.exact.shape == self.wanted.shape
        measure = self.exact if same and steadily else self.wanted
        match = self._against(measure, allowed)
        if not match.matches and match.numeric and self.choices and same:
            sides, shared = (measure, *self.choices), overlapping(self.found)
            chosen = compare_with_any(self.found, sides, allowed=allowed, overlapping=shared, where=self.where)
            match = chosen if chosen.matches else match
        if match.matches or steadily or not same:
            return match
        other = self._against(self.exact, beside(self.wanted.dtype, self.own, precision))
        return other if other.matches else match

    def as_usual(self, allowed: Tolerance) -> Match:
        """Compare with the reference by what the study allows."""
        return self._against(self.wanted, allowed)

    def _against(self, measure: torch.Tensor, allowed: Tolerance) -> Match:
        shared = overlapping(self.found)
        return compare_tensor(self.found, self.wanted, measure, allowed=allowed, overlapping=shared, where=self.where)


def _by_roundings(
    side: _Side, limit: Tolerance, place: int, made: Call, draw: Callable[[], list[Any]], precision: Precision
) -> bool:  # fmt: skip
    """Whether an output is one that roundings may give, because they decide whole numbers in it, or in what it is made of."""
    roundings = OtherRoundings(lambda: copy.deepcopy(made.model), draw, made.seed)
    with judging(precision):  # as ever: what cuDNN ships with is tf32
        if equal_or_wrong(side.wanted.dtype):
            return some_give(side.found, side.wanted, place, roundings.turns())
        if side.exact.shape != side.found.shape:
            return False
        shared = overlapping(side.found)
        match = right_by_some(side.found, side.exact, place, roundings, allowed=limit, overlapping=shared, where=side.where)
        return match is not None


def look_closer(
    output: Any, made: Call, state: Mapping[str, Changed], precision: Precision, passes: Measure = ByTorch
) -> Match:  # fmt: skip
    """Judge what one call returned and the `state` that it left by the reference's own error in that call. What the study allows
    of state is right in any case. `passes`: what reads the tensors for that error."""
    first = _look(output, made, state, precision, passes, WAYS)
    if first.matches or not first.numeric or first.error >= UNSTEADY:
        return first
    again = _look(output, made, state, precision, passes, FINER)
    return again if again.matches else first


def _look(
    output: Any, made: Call, state: Mapping[str, Changed], precision: Precision, passes: Measure, ways: Sequence[Way]
) -> Match:  # fmt: skip
    """Judge them by the reference's own error against float64 in these ways."""
    outputs, wanted = tensors_of(output), tensors_of(made.expected)
    names = [f"output {index}" for index in range(len(outputs))] if len(outputs) != 1 else ["output"]
    names += [AFTER.format(name=name) for name in state]
    found = [*outputs, *(one.found for one in state.values())]
    wanted += [one.wanted for one in state.values()]
    draw = partial(mapped, made.inputs, torch.clone)
    own = measured(made.model, draw, made.seed, wanted, tuple(state), precision, shown=made.shown, passes=passes, ways=ways)
    rows = enumerate(zip(found, wanted, own.exact, own.errors, names, strict=True))
    sides = [_Side(*row, own.choices.get(place, ())) for place, row in rows]
    limits = [tolerance(one.wanted.dtype, steady(one.own), precision) for one in sides[: len(outputs)]]
    for place, (side, limit) in enumerate(zip(sides, limits, strict=False)):
        match = side.match(limit, precision)
        if not match.matches and not (match.numeric and _by_roundings(side, limit, place, made, draw, precision)):
            return match
    for side, changed in zip(sides[len(outputs) :], state.values(), strict=True):
        allowed = of_state(side.wanted.dtype, steady(side.own), wanted[: len(outputs)], limits, precision)
        match = side.match(allowed, precision)
        if not match.matches and not side.as_usual(changed.allowed).matches:
            return match
    return Match(True)
