"""Operators of a reference whose effect no draw shows, and inputs that show it.

`torch.clamp(x, max=200)` of normal numbers changes none of them, eight times as large or not, and whoever leaves it out would be
right. So the reference is watched while it is called: which limits were reached, which comparisons had both answers. For what was
never seen, a few numbers are planted: large ones where a limit is far away, rows of zeros where it is next to zero, zeros in
several inputs at once where a small number is added to what they make (`guards`), NaN where an input's NaN is replaced, zeros
among lengths and masks where that of a result is, and the very number to which an input is compared, also where only the side of
equal ones is unseen (`met`); or all of an input is made smaller, as for the limit in `x * torch.clamp(10 / x.norm(), max=1)`.
What shows something, and leaves outputs as finite as they are, is judged in a round of its own. Source: ours.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs.bearing import is_same, places_in_memory, usual_call
from rlkernel.evaluator.judging.inputs.guards import ADD, bare, bared, guards, is_guard, sized
from rlkernel.evaluator.judging.inputs.little import resized
from rlkernel.evaluator.judging.inputs.met import MEETING, is_often, met_by, met_of
from rlkernel.evaluator.judging.inputs.moved import flat_parameters, move_state
from rlkernel.evaluator.judging.inputs.stress import stressed, stresses
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import holds_truths, mapped_at, tensors_of
from rlkernel.evaluator.messages.judgement import Met, Moved, Plant, Resized, Stress
from rlkernel.evaluator.program.codes import holds_numbers, valued
from rlkernel.evaluator.program.operators import COMPARISONS, base_name, by_name, operators_of
from rlkernel.evaluator.program.schema import Program

SHARE = 0.125
"""The share of an input's elements, or of its rows, that get a planted number; one at least."""
LITTLE = 2.0**-6
"""Limits up to which rows of zeros may show them."""
LARGE = 64.0
"""The least of the large numbers that are tried: eight times what is drawn is half of that."""
LEVELS = 5
"""Large numbers that are tried, each twice the one before."""
SMALLER = 2.0**-5, 2.0**-10
"""What all of an input is multiplied with, to show a limit on what grows where it is smaller, such as that of `10 / x.norm()`."""
MOVES = (3.0, -3.0, 6.0, -6.0)
"""What is added to a parameter, to show a limit on what is computed of it, such as that of `scale.exp().clamp(max=100)`."""
MOST_CALLS = 24
"""Calls of a reference in which numbers are planted."""
MOST_PLANTS = 3
"""Rounds with planted numbers."""
LIMITS = {"abs", "clamp", "clamp_min", "clamp_max", "hardtanh", "relu", "threshold"}
REPLACES_NAN = {"nan_to_num", "isnan", "nansum", "nanmedian", "fmax", "fmin"}
"""Those that tell NaN apart, as a comparison of numbers with themselves does."""
IGNORES = {"nll_loss_forward", "nll_loss", "nll_loss2d_forward"}
IGNORED = -100.0
"""The label that losses ignore unless the text says another. With smoothed labels they look for it by a comparison."""
WATCHED = LIMITS | COMPARISONS | REPLACES_NAN | IGNORES
SHOWING = WATCHED | MEETING
"""Operators of which something may be planted."""
UNSHOWN = "numbers among its inputs that an operator is for"
"""Stands behind a miss in such a round."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What one call of an operator may do to its operand."""

    call: int
    """Which of the watched calls of a forward it is."""
    name: str
    side: str
    number: float | None = None
    """What the operand is compared with, if that is one number."""
    place: int | None = None
    """The input that is the operand itself, if one is."""
    whole: bool = False
    """Whether the operand holds whole numbers."""


class _Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes which effects there may be in a call, and which there were."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._inputs = places_in_memory(inputs)
        self.possible = set[Effect]()
        self.seen = set[Effect]()
        self._calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name = base_name(str(func))
        if (name in WATCHED or name == ADD) and args and isinstance(args[0], torch.Tensor) and args[0].numel():
            self._look(func, name, args, dict(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _look(self, func: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._calls += 1
        given = by_name(func, args, kwargs)
        operand = valued(args[1] if name in IGNORES else args[0])
        place = self._inputs.get(operand.untyped_storage().data_ptr())
        for side, number, there in () if operand.is_complex() else _effects(name, given, operand):
            effect = Effect(self._calls, name, side, number, place, not operand.is_floating_point())
            self.possible.add(effect)
            if is_often(there):
                self.seen.add(effect)


def _effects(name: str, given: dict[str, Any], x: torch.Tensor) -> Iterator[tuple[str, float | None, torch.Tensor]]:
    """The sides of an operator: what it compares with, and where in its operand it has that effect."""
    if name == ADD:
        number = _number(given.get("other"))
        if is_guard(number) and x.is_floating_point():
            yield "low", number, bare(x, number or 0.0)
        return
    if name in REPLACES_NAN:
        yield "nan", None, torch.isnan(x)
        if given.get("posinf") is not None:
            yield "infinite", None, torch.isinf(x)
        return
    if name in IGNORES:
        number = given.get("ignore_index", int(IGNORED))
        yield "ignored", float(number), x == number
        return
    if name in COMPARISONS:
        other = given.get("other")
        if isinstance(other, torch.Tensor) and is_same(x, other):
            yield "nan", None, torch.isnan(x)
            return
        number = _number(other)
        if number is not None or isinstance(other, torch.Tensor):
            found = getattr(torch, name)(x, other)
            yield "true", number, found
            yield "false", number, ~found
        return
    if name in ("abs", "relu", "threshold"):
        if name != "abs":
            yield "kept", None, x > float(given.get("threshold", 0.0))
        yield "low", None, x < float(given.get("threshold", 0.0))
        return
    usual = (-1.0, 1.0) if name == "hardtanh" else (None, None)
    sides = zip(("min", "max"), usual, strict=True)
    low, high = (_number(given.get(side, given.get(f"{side}_val", otherwise))) for side, otherwise in sides)
    if low is not None:
        yield "low", low, x < low
    if high is not None:
        yield "high", high, x > high


def _number(value: Any) -> float | None:
    if isinstance(value, torch.Tensor):
        return float(value) if value.dim() == 0 and not value.is_complex() else None
    return float(value) if isinstance(value, (int, float)) else None


def may_hide(program: Program, source: str) -> bool:
    """Whether a reference calls an operator that is watched. What losses ignore is theirs where the text says so."""
    names = operators_of(program)
    return bool(names & (SHOWING - IGNORES)) or guards(program) or (bool(names & IGNORES) and "ignore_index" in source)


def plants_of(
    reference: SeededReference, source: str, *, whole: bool = True, until: float = math.inf
) -> tuple[Plant | Met | Resized | Moved, ...]:
    """What shows effects of operators that no draw does. whole: whether whole numbers may get others, which may be looked up in a
    table. No further plant is tried after `until`, on the monotonic clock. Whatever the reference raises at its own inputs is
    raised."""
    model = reference.model(0)
    effects = _never_seen(reference, model)
    missing = dict.fromkeys(sorted(effects, key=lambda one: (one.call, one.side)))
    if "ignore_index" not in source:
        of_losses = IGNORED if str(int(IGNORED)) not in source else None
        missing = {one: None for one in missing if one.name not in IGNORES and not (one.whole and one.number == of_losses)}
    found, usual = list[Plant | Resized | Moved](), usual_call(model, reference.inputs(0))
    given = tensors_of(reference.inputs(0))
    flat = flat_parameters(reference, model)
    # What is rarer comes last, because the calls are few.
    tries = (
        (effect, plant)
        for tried in (_tried, _smaller, lambda effect, _: _moved(effect, flat))
        for effect in tuple(missing) if effect in missing
        for plant in tried(effect, given)
        if whole or effect.name in IGNORES or plant.place is None or given[plant.place].is_floating_point()
    )  # fmt: skip
    for effect, plant in itertools.islice((one for one in tries if one[0] in missing), MOST_CALLS):
        drawn = reference.inputs(0)
        inputs = planted(drawn, plant, 0) if isinstance(plant, Plant) else drawn
        inputs = resized(drawn, plant) if isinstance(plant, Resized) else inputs
        called = move_state(reference.model(0), plant) if isinstance(plant, Moved) else model
        watching = _Watching(tensors_of(inputs))
        if usual.borne(called, inputs, watching) and effect in watching.seen:
            found.append(plant)
            for seen in watching.seen & missing.keys():
                del missing[seen]
        if len(found) == MOST_PLANTS or time.monotonic() > until:
            break
    met = met_of(
        reference, model, usual,
        lambda given, what: planted(given, what, 0) if isinstance(what, Plant) else met_by(given, what, 0),
    )  # fmt: skip
    of_numbers = (what for what in met if not holds_truths(given[what.place]))
    guarded = time.monotonic() < until and any(effect.name == ADD for effect in effects)
    sizes = sized(usual, model, given, _of_numbers(given), lambda what: planted(reference.inputs(0), what, 0)) if guarded else []
    return (*found, *itertools.islice(of_numbers, MOST_PLANTS - len(found)), *sizes)


def _never_seen(reference: SeededReference, model: nn.Module) -> set[Effect]:
    """The effects that there may be, and were not at usual inputs, nor at those of the hardest round."""
    possible, seen = set[Effect](), set[Effect]()
    for seed in (0, 1, 2):
        inputs = reference.inputs(seed)
        if seed == 2:
            inputs = stressed(inputs, next(iter(stresses(inputs)), Stress.NONE))
        watching = _Watching(tensors_of(inputs))
        if seed < 2:
            usual = usual_call(model, inputs, watching)
        elif not usual.ends(model, inputs, watching):
            break
        possible, seen = possible | watching.possible, seen | watching.seen
    return possible - seen


def _tried(effect: Effect, inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """What may show an effect, the mildest first."""
    number = effect.number
    if effect.name == ADD:
        yield from bared(inputs, _of_numbers(inputs))
    elif effect.side == "nan" and effect.place is not None:
        yield Plant(effect.place, (math.nan,))
    elif effect.side == "nan":  # of what is computed: where a length is zero, or a row of a mask
        whole = [place for place, tensor in enumerate(inputs) if not (tensor.is_floating_point() or tensor.is_complex())]
        yield from (Plant(place, (0.0,), rows=True) for place in whole if inputs[place].numel() > 1)
    elif effect.side == "infinite" and effect.place is not None:
        yield Plant(effect.place, (math.inf, -math.inf))
    elif effect.name in ("eq", "ne", *IGNORES):
        if effect.place is not None and number is not None and math.isfinite(number):
            yield Plant(effect.place, (number,))
    elif effect.place is not None and (effect.whole or (effect.side == "low" and not number)):
        # Below a limit of zero lies what an input never is; of whole numbers, one beside a limit shows it.
        beside = (-1.0, 1.0, 0.0) if effect.name in COMPARISONS else (-1.0,) if effect.side == "low" else (1.0,)
        yield from (Plant(effect.place, ((number or 0.0) + step,)) for step in beside)
    elif not effect.whole and math.isfinite(number or 0.0) and effect.side not in ("nan", "infinite"):
        places = _of_numbers(inputs)
        if 0.0 < abs(number or 0.0) <= LITTLE:
            for place in places:
                yield Plant(place, (0.0,), rows=True)
            return
        first = max(LARGE, 2.0 ** math.floor(math.log2(abs(number) / 4))) if number else LARGE
        for level in range(LEVELS):
            for place in places:
                large = first * 2.0**level
                yield Plant(place, (large, -large) if bool((inputs[place] < 0).any()) else (large,))


def _smaller(effect: Effect, inputs: Sequence[torch.Tensor]) -> Iterator[Resized]:
    """All of an input made smaller, which may show a limit on what is computed of it."""
    number = abs(effect.number or 0.0)
    if _is_computed(effect) and LITTLE < number < math.inf:
        # Masks stay masks.
        scaled = [place for place in _of_numbers(inputs) if bool((inputs[place] != inputs[place].round()).any())]
        yield from (Resized(place, factor) for factor in SMALLER for place in scaled)


def _moved(effect: Effect, names: Sequence[str]) -> Iterator[Moved]:
    """A parameter moved, which may show a limit on what is computed of it."""
    if _is_computed(effect):
        yield from (Moved(None, name, shift=by) for by in MOVES for name in names)


def _is_computed(effect: Effect) -> bool:
    """Whether an operator limits what is computed of real numbers, by how large it is."""
    plain = effect.place is None and not effect.whole and effect.name not in ("eq", "ne", ADD, *IGNORES)
    return plain and effect.side not in ("nan", "infinite")


def _of_numbers(inputs: Sequence[torch.Tensor]) -> list[int]:
    """The places of the inputs in which several numbers may be planted; truth values stay so."""
    numbers = (place for place, tensor in enumerate(inputs) if holds_numbers(tensor) and tensor.numel() > 1)
    return [place for place in numbers if not holds_truths(inputs[place])]


def planted(inputs: list[Any], plant: Plant, seed: int) -> list[Any]:
    """The arguments of forward with numbers planted at places drawn from `seed`; no other tensors than those named are others."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        device = tensor.device
        generator = torch.Generator(device).manual_seed(seed)
        shape = (*tensor.shape[:-1], 1) if plant.rows and tensor.dim() > 1 else tensor.shape
        drawn = torch.rand(shape, generator=generator, device=device)
        surely = drawn.flatten().topk(min(len(plant.values), drawn.numel()), largest=False).values[-1]
        here = drawn <= surely.clamp(min=SHARE)
        # One after the other, so that each is somewhere.
        which = here.flatten().cumsum(0, dtype=torch.int32).view(shape) % len(plant.values)
        made = tensor
        for index, value in enumerate(plant.values):
            number = torch.tensor(value, dtype=torch.float64).to(made.dtype)
            made = torch.where(here & (which == index), number.to(device), made)
        return torch.empty_like(tensor).copy_(made)

    for place in (plant.place, *plant.also):
        inputs = mapped_at(inputs, place, change)
    return inputs
