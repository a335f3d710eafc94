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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.inputs.absent import absences, is_of_nothing
from rlkernel.evaluator.judging.inputs.agreeing import agreeing, move_toward
from rlkernel.evaluator.judging.inputs.bearing import usual_call
from rlkernel.evaluator.judging.inputs.effects import (
    BETWEEN,
    GATHERS,
    IGNORED,
    IGNORES,
    LATER,
    LIMITS,
    SOLVES,
    WATCHED,
    WITHOUT_LIMIT,
    Effect,
    Watching,
)
from rlkernel.evaluator.judging.inputs.guards import ADD, bared, guards, sized, sliced
from rlkernel.evaluator.judging.inputs.little import resized
from rlkernel.evaluator.judging.inputs.met import MEETING, met_by, met_of
from rlkernel.evaluator.judging.inputs.moved import flat_parameters, free_parameters, move_state
from rlkernel.evaluator.judging.inputs.stress import stressed, stresses
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import holds_truths, mapped_at, tensors_of
from rlkernel.evaluator.messages.judgement import Met, Moved, Plant, Resized, Stress
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.operators import COMPARISONS, operators_of
from rlkernel.evaluator.program.schema import Program

SHARE = 0.125
"""The share of an input's elements, or of its rows, that get a planted number; one at least."""
LITTLE = 2.0**-6
"""Limits up to which rows of zeros may show them."""
LARGE = 64.0
"""The least of the large numbers that are tried: eight times what is drawn is half of that."""
GROWTH = 1e5
"""How much larger the square of the last unknown of a triangular solve is than that of the first."""
NEAR = 8.0
"""The least for a limit next to zero, which an exponential falls below: behind 64 nothing is left of it."""
BEYOND = 1.0625
"""How far beyond its threshold a softplus is still told from a straight line, as a factor."""
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
MOST_ABSENT, MOST_ABSENT_PLANTS = 16, 2
"""The same of inputs with nothing in them."""
SHOWING = WATCHED | MEETING
"""Operators of which something may be planted."""
_Kind = Callable[[Effect, Sequence[torch.Tensor]], Iterable[Plant | Resized | Moved]]
UNSHOWN = "numbers among its inputs that an operator is for"
"""Stands behind a miss in such a round."""


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
    usual, given = usual_call(model, reference.inputs(0)), tensors_of(reference.inputs(0))
    flat = flat_parameters(reference, model)
    matrices = {name: t for name, t in free_parameters(reference, model).items() if t.dim() > 1}

    called = dict[Plant | Resized | Moved, set[Effect]]()

    def seen_with(plant: Plant | Resized | Moved) -> set[Effect]:
        """The effects that there are with a plant; none where the reference does not bear it."""
        drawn = reference.inputs(0)
        inputs = planted(drawn, plant, 0) if isinstance(plant, Plant) else drawn
        inputs = resized(drawn, plant) if isinstance(plant, Resized) else inputs
        moved = move_state(reference.model(0), plant) if isinstance(plant, Moved) else model
        moved = move_toward(reference.model(0), plant) if isinstance(plant, Plant) and plant.toward else moved
        watching = Watching(tensors_of(inputs))
        return watching.seen if usual.borne(moved, inputs, watching) else set()

    def shown(kinds: Sequence[_Kind], calls: int, most: int) -> list[Plant | Resized | Moved]:
        """What shows one of the missing effects at least, of what these kinds try. What several ask for is called once."""
        before = len(called)
        found = list[Plant | Resized | Moved]()
        tries = (
            (effect, plant)
            for later in (False, True)
            for tried in kinds
            for effect in tuple(missing) if effect in missing and (effect.name in LATER) == later
            for plant in tried(effect, given)
            if whole or effect.name in IGNORES or plant.place is None or given[plant.place].is_floating_point()
        )  # fmt: skip
        for effect, plant in tries:
            if effect not in missing or plant in found:
                continue
            if plant not in called:
                if len(called) - before == calls:
                    break
                called[plant] = seen_with(plant)
            if effect in called[plant]:
                found.append(plant)
                for seen in called[plant] & missing.keys():
                    del missing[seen]
            if len(found) == most or time.monotonic() > until:
                break
        return found

    # What is rarer comes last, because the calls are few.
    kinds: tuple[_Kind, ...] = (
        _tried,
        _smaller,
        lambda effect, _: _moved(effect, flat),
        lambda effect, inputs: _agreeing(effect, inputs, matrices),
        lambda effect, inputs: _between(effect, missing, inputs),
        _near,
    )
    found = shown(kinds, MOST_CALLS, MOST_PLANTS)
    empty = shown((_absent,), MOST_ABSENT, MOST_ABSENT_PLANTS)
    met = met_of(
        reference, model, usual,
        lambda given, what: planted(given, what, 0) if isinstance(what, Plant) else met_by(given, what, 0),
    )  # fmt: skip
    of_numbers = (what for what in met if not holds_truths(given[what.place]))
    guarded = time.monotonic() < until and any(effect.name == ADD for effect in effects)
    sizes, slices = list[Plant](), list[Plant]()
    if guarded:
        draw, places = lambda what: planted(reference.inputs(0), what, 0), _of_numbers(given)
        sizes = sized(usual, model, given, places, draw)
        slices = sliced(usual, model, given, places, draw, [one for one in (*found, *sizes) if isinstance(one, Plant)])
    return (*found, *itertools.islice(of_numbers, MOST_PLANTS - len(found)), *sizes, *slices, *empty)


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


def _tried(effect: Effect, inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """What may show an effect, the mildest first."""
    number = effect.number
    if effect.name == BETWEEN or effect.name in GATHERS:
        return
    if effect.name in SOLVES:
        yield from _linked(inputs)
    elif effect.name == ADD:
        yield from bared(inputs, _of_numbers(inputs))
    elif effect.side == "nan" and effect.place is not None:
        yield Plant(effect.place, (math.nan,))
    elif effect.side == "nan":  # of what is computed: where a length is zero, or a row of a mask
        whole = [place for place, tensor in enumerate(inputs) if not (tensor.is_floating_point() or tensor.is_complex())]
        yield from (Plant(place, (0.0,), along=_rows(inputs[place])) for place in whole if inputs[place].numel() > 1)
    elif effect.side == "infinite" and effect.place is not None:
        yield Plant(effect.place, (math.inf, -math.inf))
    elif effect.name in ("eq", "ne", *IGNORES):
        if effect.place is not None and number is not None and math.isfinite(number):
            yield Plant(effect.place, (number,))
    elif effect.place is not None and (effect.whole or (effect.side == "low" and not number)):
        # Below a limit of zero lies what an input never is; of whole numbers, one beside a limit shows it.
        beside = (-1.0, 1.0, 0.0) if effect.name in COMPARISONS else (-1.0,) if effect.side == "low" else (1.0,)
        yield from (Plant(effect.place, ((number or 0.0) + step,)) for step in beside)
    elif (not effect.whole or _counts(effect)) and math.isfinite(number or 0.0) and effect.side not in ("nan", "infinite"):
        if _is_little(effect):
            yield from (Plant(place, (0.0,), along=_rows(inputs[place])) for place in _of_numbers(inputs))
            return
        first = max(LARGE, 2.0 ** math.floor(math.log2(abs(number) / 4))) if number else LARGE
        yield from _large(abs(number) * BEYOND if number and effect.name == "softplus" else first, inputs)


def _near(effect: Effect, inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Large numbers that may show a limit next to zero, where rows of zeros have not."""
    if _is_little(effect) and not effect.whole and effect.name not in WITHOUT_LIMIT:
        yield from _large(NEAR, inputs)


def _is_little(effect: Effect) -> bool:
    """Whether an operator's limit is next to zero."""
    return 0.0 < abs(effect.number or 0.0) <= LITTLE


def _large(first: float, inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Large numbers in each input, of either sign where it has both, each twice the one before."""
    for level in range(LEVELS):
        for place in _of_numbers(inputs):
            large = first * 2.0**level
            yield Plant(place, (large, -large) if bool((inputs[place] < 0).any()) else (large,))


def _linked(inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Numbers beside the diagonal of a square matrix, of about its size, so that each unknown depends on many others. Of n
    unknowns the last is then about as many times as large as the first, whatever n is, and twelve sweeps over all leave half of
    it out."""
    for place in _of_numbers(inputs):
        matrix = inputs[place]
        if matrix.dim() > 1 and (size := matrix.shape[-1]) == matrix.shape[-2]:
            diagonal = float(matrix.diagonal(dim1=-2, dim2=-1).abs().mean()) or 1.0
            number = diagonal * math.sqrt((GROWTH ** (1 / size) - 1) / SHARE)
            yield Plant(place, (number, -number), beside=True)


def _counts(effect: Effect) -> bool:
    """Whether an operator limits whole numbers that are computed, as those to which an input is quantised."""
    return effect.whole and effect.place is None and effect.name in LIMITS


def _between(effect: Effect, missing: Collection[Effect], inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Numbers between all bounds of one input between which none has been drawn. Truth values stay so, and whole numbers are
    whole."""
    if effect.name != BETWEEN or effect.place is None or effect.place not in _of_numbers(inputs):
        return
    given = inputs[effect.place]
    whole = bool((given == given.round()).all())
    numbers = (one.number for one in missing if one.name == BETWEEN and one.place == effect.place and one.number is not None)
    yield Plant(effect.place, tuple(float(math.floor(number)) if whole else number for number in numbers))


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


def _agreeing(effect: Effect, inputs: Sequence[torch.Tensor], matrices: Mapping[str, torch.Tensor]) -> Iterator[Plant]:
    """Rows that point the same way, or opposite ways, of which a cosine or a distance is computed that no draw comes near to."""
    if _is_computed(effect) and effect.number is not None and not _is_little(effect):
        yield from agreeing(inputs, _of_numbers(inputs), matrices)


def _absent(effect: Effect, inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Inputs with nothing in them, where a zero that is computed shows something."""
    if is_of_nothing(effect):
        yield from absences(inputs)


def _is_computed(effect: Effect) -> bool:
    """Whether an operator limits what is computed of real numbers, by how large it is."""
    plain = effect.place is None and not effect.whole and effect.name not in WITHOUT_LIMIT
    return plain and effect.side not in ("nan", "infinite")


def _of_numbers(inputs: Sequence[torch.Tensor]) -> list[int]:
    """The places of the inputs in which several numbers may be planted; truth values stay so."""
    numbers = (place for place, tensor in enumerate(inputs) if holds_numbers(tensor) and tensor.numel() > 1)
    return [place for place in numbers if not holds_truths(inputs[place])]


def _rows(tensor: torch.Tensor) -> tuple[int, ...]:
    """The axis along which rows of an input lie; none where it is one row."""
    return (-1,) if tensor.dim() > 1 else ()


def planted(inputs: list[Any], plant: Plant, seed: int) -> list[Any]:
    """The arguments of forward with numbers planted at places drawn from `seed`; no other tensors than those named are others.
    What has one number for each slice has them where the slices do."""
    axes = tensors_of(inputs)[plant.place].dim()

    def change(tensor: torch.Tensor, sign: int) -> torch.Tensor:
        device = tensor.device
        generator = torch.Generator(device).manual_seed(seed)
        shape = list(tensor.shape)
        for axis in plant.along if tensor.dim() == axes else ():
            shape[axis] = 1
        drawn = torch.rand(shape, generator=generator, device=device)
        surely = drawn.flatten().topk(min(len(plant.values), drawn.numel()), largest=False).values[-1]
        here = drawn <= surely.clamp(min=SHARE)
        if plant.beside:
            here &= (tensor != 0) & ~torch.eye(tensor.shape[-1], dtype=torch.bool, device=device)
        # One after the other, so that each is somewhere.
        which = here.flatten().cumsum(0, dtype=torch.int32).view(shape) % len(plant.values)
        made = tensor
        for index, value in enumerate(plant.values):
            number = torch.tensor(sign * value, dtype=torch.float64).to(made.dtype)
            made = torch.where(here & (which == index), number.to(device), made)
        return torch.empty_like(tensor).copy_(made)

    inputs = mapped_at(inputs, plant.place, lambda tensor: change(tensor, 1))
    for place in plant.also:
        inputs = mapped_at(inputs, place, lambda tensor: change(tensor, -1 if plant.opposed else 1))
    return inputs
