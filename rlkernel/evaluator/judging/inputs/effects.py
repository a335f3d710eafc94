"""What operators of a reference do to some numbers and not to others, and what of that a call has shown.

A limit, a comparison with a number, a replaced NaN, the bend of an activation and a label that is ignored are effects. So is each
stretch between two bounds of one input: where `(x > 30) & (x < 31)`, both comparisons are shown by a 64 that is in neither
stretch. A call is watched: which effects there may be, and which there were. Source: ours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs.bearing import is_same, places_in_memory
from rlkernel.evaluator.judging.inputs.fixed import holds_one_value
from rlkernel.evaluator.judging.inputs.guards import ADD, bare, is_guard
from rlkernel.evaluator.judging.inputs.met import is_often
from rlkernel.evaluator.program.codes import holds_numbers, valued
from rlkernel.evaluator.program.operators import COMPARISONS, base_name, by_name

LIMITS = {"abs", "clamp", "clamp_min", "clamp_max", "hardtanh", "relu", "threshold"}
EXTREMES = {"minimum", "maximum"}
"""They limit what is given, where one of the two operands is one number throughout."""
BENDS = {"elu", "hardsigmoid", "hardswish", "huber_loss", "leaky_relu", "smooth_l1_loss", "softplus", "softshrink"}
"""Operators that are straight on one side of a number."""
SOLVES = {"linalg_solve_triangular": 0, "triangular_solve": 1, "cholesky_solve": 1}
"""Operators that solve by substitution -> which of their arguments the triangle is. Next to a triangle that is nearly diagonal a
few sweeps over all unknowns are as exact."""
LATEST = 12.0
"""The largest threshold of a softplus behind which a straight line is another answer in float32."""
WIDTH = 4.0
"""How far behind it that is so."""
REPLACES_NAN = {"nan_to_num", "isnan", "nansum", "nanmedian", "fmax", "fmin"}
"""Those that tell NaN apart, as a comparison of numbers with themselves does."""
GATHERS = {"all", "any"}
"""They tell whether a slice of truth values has nothing in it, or nothing else: whether a row is padding alone."""
IGNORES = {"nll_loss_forward", "nll_loss", "nll_loss2d_forward"}
IGNORED = -100.0
"""The label that losses ignore unless the text says another. With smoothed labels they look for it by a comparison."""
WATCHED = LIMITS | EXTREMES | BENDS | COMPARISONS | REPLACES_NAN | GATHERS | IGNORES | SOLVES.keys()
LATER = EXTREMES | BENDS | SOLVES.keys()
"""Those that are looked for last: what is written as a limit, or as a comparison, is more often one that somebody means."""
BETWEEN = "between"
"""The name of a stretch between two bounds."""
WITHOUT_LIMIT = {"eq", "ne", ADD, BETWEEN, *GATHERS, *IGNORES, *SOLVES}
"""Those whose number, if there is one, limits nothing."""
SELDOM = 1e-3
"""The share of an input's elements below which a stretch is missed by another draw."""
LAST = 1 << 30
"""Stands for the call of what no single call has: it comes after all that are watched."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one call of an operator may do to its operand, or a stretch between two bounds of an input."""

    call: int
    """Which of the watched calls of a forward it is."""
    name: str
    side: str
    number: float | None = None
    """What the operand is compared with, if that is one number; the middle of a stretch."""
    place: int | None = None
    """The input that is the operand itself, if one is."""
    whole: bool = False
    """Whether the operand holds whole numbers."""


class Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes which effects there may be in a call, and which there were."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._given = inputs
        self._inputs = places_in_memory(inputs)
        self.possible = set[Effect]()
        self.seen = set[Effect]()
        self._calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name = base_name(str(func))
        if (name in WATCHED or name == ADD) and args and isinstance(args[0], torch.Tensor) and args[0].numel():
            self._look(func, name, args, dict(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)  # type: ignore[no-untyped-call]
        for place, low, high in _stretches(self.possible):
            given = self._given[place]
            effect = Effect(LAST, BETWEEN, BETWEEN, (low + high) / 2, place)
            self.possible.add(effect)
            if float(((given > low) & (given < high)).double().mean()) >= SELDOM:
                self.seen.add(effect)

    def _look(self, func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._calls += 1
        given = by_name(func, args, kwargs)
        operand = valued(args[1 if name in IGNORES else SOLVES.get(name, 0)])
        if name in EXTREMES and holds_one_value(operand):
            operand, given = args[1], {"other": operand}
        place = self._inputs.get(operand.untyped_storage().data_ptr())
        for side, number, there in () if operand.is_complex() else _effects(name, given, operand):
            effect = Effect(self._calls, name, side, number, place, not operand.is_floating_point())
            self.possible.add(effect)
            if is_often(there):
                self.seen.add(effect)


def _stretches(effects: set[Effect]) -> list[tuple[int, float, float]]:
    """The stretches between neighbouring bounds of one input of real numbers, as its place and the two bounds."""
    bounds = {
        (effect.place, effect.number)
        for effect in effects
        if effect.place is not None and effect.number is not None and not effect.whole
        and math.isfinite(effect.number) and effect.name not in WITHOUT_LIMIT
    }  # fmt: skip
    pairs = itertools.pairwise(sorted(bounds))
    return [(place, low, high) for (place, low), (other, high) in pairs if place == other]


def _effects(name: str, given: dict[str, Any], x: torch.Tensor) -> Iterator[tuple[str, float | None, torch.Tensor]]:
    """The sides of an operator: what it compares with, and where in its operand it has that effect."""
    if name == ADD:
        number = _number(given.get("other"))
        if is_guard(number) and x.is_floating_point():
            yield "low", number, bare(x, number or 0.0)
    elif name in REPLACES_NAN:
        yield "nan", None, torch.isnan(x)
        if given.get("posinf") is not None:
            yield "infinite", None, torch.isinf(x)
    elif name in GATHERS:
        along = {key: given[key] for key in ("dim", "keepdim") if given.get(key) is not None}
        found = getattr(torch, name)(x, **along).bool()
        if found.dim():  # what decides for all at once is more often a branch of the text
            yield "true", None, found
            yield "false", None, ~found
    elif name in IGNORES:
        label = given.get("ignore_index", int(IGNORED))
        yield "ignored", float(label), x == label
    elif name in COMPARISONS or name in EXTREMES:
        yield from _compared(name, given.get("other"), x)
    elif name in SOLVES:
        upper = given.get("upper", name == "triangular_solve")
        rest = x.triu(1) if upper else x.tril(-1)
        yield "far", None, rest.norm(dim=-1) > x.diagonal(dim1=-2, dim2=-1).abs()
    elif name in BENDS:
        yield from _bends(name, given, x)
    elif name in ("abs", "relu", "threshold"):
        if name != "abs":
            yield "kept", None, x > float(given.get("threshold", 0.0))
        yield "low", None, x < float(given.get("threshold", 0.0))
    else:
        usual = (-1.0, 1.0) if name == "hardtanh" else (None, None)
        sides = zip(("min", "max"), usual, strict=True)
        low, high = (_number(given.get(side, given.get(f"{side}_val", otherwise))) for side, otherwise in sides)
        if low is not None:
            yield "low", low, x < low
        if high is not None:
            yield "high", high, x > high
        # What is always beyond a limit is a constant, whatever it is made of.
        number = high if low is None else low
        if number is not None:
            yield "kept", number, ((x > low) if low is not None else x == x) & ((x < high) if high is not None else x == x)


def _compared(name: str, other: Any, x: torch.Tensor) -> Iterator[tuple[str, float | None, torch.Tensor]]:
    """The sides of what is compared with a number, or with another tensor."""
    if name in EXTREMES:
        if holds_one_value(other):
            bound = float(other.flatten()[0])
            yield ("low", bound, x < bound) if name == "maximum" else ("high", bound, x > bound)
            yield "kept", bound, (x > bound) if name == "maximum" else (x < bound)
        return
    if isinstance(other, torch.Tensor) and is_same(x, other):
        yield "nan", None, torch.isnan(x)
        return
    number = _number(other)
    if number is not None or isinstance(other, torch.Tensor):
        found = getattr(torch, name)(x, other)
        yield "true", number, found
        yield "false", number, ~found


def _bends(name: str, given: dict[str, Any], x: torch.Tensor) -> Iterator[tuple[str, float | None, torch.Tensor]]:
    """The sides of an operator that is straight on one side of a number."""
    if not holds_numbers(x):
        return
    if name in ("elu", "leaky_relu"):
        yield "low", 0.0, x < 0
    elif name in ("hardsigmoid", "hardswish"):
        yield "low", -3.0, x < -3
        yield "high", 3.0, x > 3
    elif name == "softshrink":
        bound = float(given.get("lambd", 0.5))
        yield "low", -bound, x < -bound
        yield "high", bound, x > bound
    elif name == "softplus":
        factor, bound = float(given.get("beta", 1.0)), float(given.get("threshold", 20.0))
        if bound <= LATEST and factor > 0:
            # Far behind it, log(1 + exp(x)) is the same.
            yield "high", bound / factor, (x > bound / factor) & (x < (bound + WIDTH) / factor)
    else:  # a loss that is a square near its target
        bound = float(given.get("delta", given.get("beta", 1.0)))
        far = (x - given["target"]).abs()
        yield "true", bound, far > bound
        yield "false", bound, far < bound


def _number(value: Any) -> float | None:
    if isinstance(value, torch.Tensor):
        return float(value) if value.dim() == 0 and not value.is_complex() else None
    return float(value) if isinstance(value, (int, float)) else None
