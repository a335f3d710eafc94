"""What may show an operator's effect that no draw shows: numbers to plant among inputs, inputs and parameters that are larger or
smaller. `unshown.py` tries these, the mildest first. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import torch

from rlkernel.evaluator.judging.inputs.absent import absences, is_of_nothing
from rlkernel.evaluator.judging.inputs.agreeing import agreeing
from rlkernel.evaluator.judging.inputs.effects import BETWEEN, GATHERS, IGNORES, LIMITS, SOLVES, WITHOUT_LIMIT, Effect
from rlkernel.evaluator.judging.inputs.guards import ADD, bared
from rlkernel.evaluator.judging.inputs.sowing import SHARE
from rlkernel.evaluator.judging.references.reference_calls import holds_truths
from rlkernel.evaluator.messages.judgement import Moved, Plant, Resized
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.operators import COMPARISONS

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


def usual(effect: Effect, inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """What may show an effect, the mildest first."""
    number = effect.number
    if effect.name == BETWEEN or effect.name in GATHERS:
        return
    if effect.name in SOLVES:
        yield from _linked(inputs)
    elif effect.name == ADD:
        yield from bared(inputs, of_numbers(inputs))
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
            yield from (Plant(place, (0.0,), along=_rows(inputs[place])) for place in of_numbers(inputs))
            return
        first = max(LARGE, 2.0 ** math.floor(math.log2(abs(number) / 4))) if number else LARGE
        yield from _large(abs(number) * BEYOND if number and effect.name == "softplus" else first, inputs)


def near(effect: Effect, inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Large numbers that may show a limit next to zero, where rows of zeros have not."""
    if _is_little(effect) and not effect.whole and effect.name not in WITHOUT_LIMIT:
        yield from _large(NEAR, inputs)


def _is_little(effect: Effect) -> bool:
    """Whether an operator's limit is next to zero."""
    return 0.0 < abs(effect.number or 0.0) <= LITTLE


def _large(first: float, inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Large numbers in each input, of either sign where it has both, each twice the one before."""
    for level in range(LEVELS):
        for place in of_numbers(inputs):
            large = first * 2.0**level
            yield Plant(place, (large, -large) if bool((inputs[place] < 0).any()) else (large,))


def _linked(inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Numbers beside the diagonal of a square matrix, of about its size, so that each unknown depends on many others. Of n
    unknowns the last is then about as many times as large as the first, whatever n is, and twelve sweeps over all leave half of
    it out."""
    for place in of_numbers(inputs):
        matrix = inputs[place]
        if matrix.dim() > 1 and (size := matrix.shape[-1]) == matrix.shape[-2]:
            diagonal = float(matrix.diagonal(dim1=-2, dim2=-1).abs().mean()) or 1.0
            number = diagonal * math.sqrt((GROWTH ** (1 / size) - 1) / SHARE)
            yield Plant(place, (number, -number), beside=True)


def _counts(effect: Effect) -> bool:
    """Whether an operator limits whole numbers that are computed, as those to which an input is quantised."""
    return effect.whole and effect.place is None and effect.name in LIMITS


def between(effect: Effect, missing: Collection[Effect], inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Numbers between all bounds of one input between which none has been drawn. Truth values stay so, and whole numbers are
    whole."""
    if effect.name != BETWEEN or effect.place is None or effect.place not in of_numbers(inputs):
        return
    given = inputs[effect.place]
    whole = bool((given == given.round()).all())
    numbers = (one.number for one in missing if one.name == BETWEEN and one.place == effect.place and one.number is not None)
    yield Plant(effect.place, tuple(float(math.floor(number)) if whole else number for number in numbers))


def smaller(effect: Effect, inputs: Sequence[torch.Tensor]) -> Iterator[Resized]:
    """All of an input made smaller, which may show a limit on what is computed of it."""
    number = abs(effect.number or 0.0)
    if _is_computed(effect) and LITTLE < number < math.inf:
        # Masks stay masks.
        scaled = [place for place in of_numbers(inputs) if bool((inputs[place] != inputs[place].round()).any())]
        yield from (Resized(place, factor) for factor in SMALLER for place in scaled)


def moved(effect: Effect, names: Sequence[str]) -> Iterator[Moved]:
    """A parameter moved, which may show a limit on what is computed of it."""
    if _is_computed(effect):
        yield from (Moved(None, name, shift=by) for by in MOVES for name in names)


def agreeing_rows(effect: Effect, inputs: Sequence[torch.Tensor], matrices: Mapping[str, torch.Tensor]) -> Iterator[Plant]:
    """Rows that point the same way, or opposite ways, of which a cosine or a distance is computed that no draw comes near to."""
    if _is_computed(effect) and effect.number is not None and not _is_little(effect):
        yield from agreeing(inputs, of_numbers(inputs), matrices)


def absent(effect: Effect, inputs: Sequence[torch.Tensor]) -> Iterator[Plant]:
    """Inputs with nothing in them, where a zero that is computed shows something."""
    if is_of_nothing(effect):
        yield from absences(inputs)


def _is_computed(effect: Effect) -> bool:
    """Whether an operator limits what is computed of real numbers, by how large it is."""
    plain = effect.place is None and not effect.whole and effect.name not in WITHOUT_LIMIT
    return plain and effect.side not in ("nan", "infinite")


def of_numbers(inputs: Sequence[torch.Tensor]) -> list[int]:
    """The places of the inputs in which several numbers may be planted; truth values stay so."""
    numbers = (place for place, tensor in enumerate(inputs) if holds_numbers(tensor) and tensor.numel() > 1)
    return [place for place in numbers if not holds_truths(inputs[place])]


def _rows(tensor: torch.Tensor) -> tuple[int, ...]:
    """The axis along which rows of an input lie; none where it is one row."""
    return (-1,) if tensor.dim() > 1 else ()
