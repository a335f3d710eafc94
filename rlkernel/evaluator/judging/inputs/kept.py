"""Gates that keep, for references that forget what is far away.

Of `h = sigmoid(g) * h + x` with normal gates nothing is left after thirty steps, and whoever begins each chunk of a sequence
thirty-two steps before it is right at any length. So a reference is called with another beginning of all its inputs: where its
last results hardly move, though they are made of that, one input or parameter is shifted, or pressed to one end of its range,
until they do. What shows something is judged in a round of its own. A decay that stands in the text shows nothing: there a
window is right whatever is given. Source: ours.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from rlkernel.evaluator.judging.inputs.bearing import Usual, usual_call
from rlkernel.evaluator.judging.inputs.moved import MOST_TENSORS, SHIFTS, free_parameters, movable, move_state, with_moved
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import kinds_of, mapped, tensors_of
from rlkernel.evaluator.messages.judgement import Moved
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.operators import base_name, operators_of
from rlkernel.evaluator.program.recurrent import GATES
from rlkernel.evaluator.program.schema import Op, Program

SCANS = {"cumsum", "cumprod", "logcumsumexp", *GATES}
"""Operators that hand on what was before, from place to place."""
TURNS = {"select", "slice", "unbind", "split", "split_with_sizes"}
"""Operators by which a loop takes one place after another."""
FEWEST_TURNS = 8
"""How many of these there are where they are a loop's."""
PART = 4
"""The first of so many parts of an axis is its beginning, and the last one its end."""
SHORTEST = 16
"""The places of the shortest axis that is looked at."""
TELLS = 0.02
"""The share of the last results by which they move where the beginning matters."""
SHOWN = 0.1
"""The same where it was made to matter."""
GROWN = 2.0**12
"""How many times as large as usually the last results may become: what is kept is added up."""
PRESSED = 2.0**-8
"""What is left of the distances from 0, or from 1 between 0 and 1, where an input is pressed there: a decay is a number there."""
MOST_AXES = 3
"""The most sizes of axes that are looked at, the longest first."""
MOST_TRIES = 96
"""The most ways to move them that are tried, each of which costs two calls."""
MOST_ELEMENTS = 1 << 20
"""The most elements that all inputs have together."""
MOST_ON_GPU = 1 << 28
"""The same on a GPU."""


def may_forget(program: Program) -> bool:
    """Whether a reference hands on what was before, or goes from place to place."""
    turns = sum(isinstance(step, Op) and base_name(step.op) in TURNS for step in program.forward)
    return bool(operators_of(program) & SCANS) or turns >= FEWEST_TURNS


class _Beginning:
    """What a reference gives where its inputs begin otherwise."""

    def __init__(self, reference: SeededReference) -> None:
        self._reference = reference
        self.usual: Usual = usual_call(reference.model(0), reference.inputs(0))

    def _call(self, what: Moved | None, size: int, begin: float | None) -> list[torch.Tensor] | None:
        """The outputs; None where such a call is not borne. size: that of the axes of which the beginning is another draw's, or
        the number `begin`."""
        inputs, other = self._reference.inputs(0), tensors_of(self._reference.inputs(1)) if size else []
        places = itertools.count()

        def change(tensor: torch.Tensor) -> torch.Tensor:
            place = next(places)
            if size not in tensor.shape or not tensor.is_floating_point():
                return tensor
            first = (tensor.shape.index(size), 0, size // PART)
            made = torch.empty_like(tensor).copy_(tensor)
            if begin is not None:
                made.narrow(*first).fill_(begin)
            elif place < len(other) and other[place].shape == tensor.shape:
                made.narrow(*first).copy_(other[place].narrow(*first))
            return made

        inputs = [mapped(value, change) for value in inputs] if size else inputs
        model = self._reference.model(0)
        if what is not None:
            inputs, model = with_moved(inputs, what), move_state(model, what)
        return self.usual.outputs(model, inputs)

    def reached(self, size: int) -> list[bool]:
        """Whether the end of each output is made of the beginning along axes of a size, whatever that holds."""
        outputs = self._call(None, size, math.nan)
        return [end.is_floating_point() and bool(end.isnan().any()) for end in _ends(outputs or [], size)]

    def by(self, size: int, what: Moved | None = None) -> list[tuple[float, float]] | None:
        """The share of the end of each output by which it moves with another beginning, and its size; None where that is not
        borne."""
        one, other = self._call(what, 0, None), self._call(what, size, None)
        if one is None or other is None or not kinds_of(one) == kinds_of(other) == self.usual.kinds:
            return None
        return [_distance(a, b) for a, b in zip(_ends(one, size), _ends(other, size), strict=True)]


def _ends(outputs: Sequence[torch.Tensor], size: int) -> list[torch.Tensor]:
    """The last places of outputs that have an axis of this size, and the others whole."""
    count = size // PART
    return [t.narrow(t.shape.index(size), size - count, count) if size in t.shape else t for t in outputs]


def _distance(one: torch.Tensor, other: torch.Tensor) -> tuple[float, float]:
    if not one.is_floating_point():
        return 0.0, 0.0
    size, apart = (float(torch.linalg.vector_norm(t.double())) for t in (one, one.double() - other.double()))
    return (apart / size if size else 0.0), size


def kept_of(reference: SeededReference, *, until: float = math.inf) -> tuple[Moved, ...]:
    """What makes the beginning of its inputs matter to the last results of a reference that usually forgets it. No further way is
    tried after `until`, on the monotonic clock. Whatever the reference raises at its own inputs is raised."""
    given = tensors_of(reference.inputs(0))
    floats = [tensor for tensor in given if holds_numbers(tensor) and tensor.numel() > 1]
    if not floats or sum(tensor.numel() for tensor in given) > _most(given[0].device):
        return ()
    sizes = sorted({size for tensor in floats for size in tensor.shape if size >= SHORTEST}, reverse=True)
    beginning, found, left = _Beginning(reference), dict[Moved, None](), MOST_TRIES
    for size in sizes[:MOST_AXES]:
        forgotten = _forgotten(beginning, size)
        for what in itertools.islice(_tried(reference, given), left) if forgotten else ():
            left -= 1
            shares = beginning.by(size, what) if time.monotonic() < until else None
            usually, now = forgotten, dict(enumerate(shares or ()))
            forgotten = {place: before for place, before in usually.items() if not _shows(now.get(place), before)}
            if len(forgotten) < len(usually):
                found[what] = None
            if not forgotten:
                break
    return tuple(found)


def _forgotten(beginning: _Beginning, size: int) -> dict[int, float]:
    """The outputs whose end is made of the beginning and hardly moves with it, and how large that end is."""
    reached = beginning.reached(size)
    shares = beginning.by(size) if any(reached) else None
    pairs = enumerate(zip(reached, shares or (), strict=False))
    return {place: whole for place, (there, (share, whole)) in pairs if there and share <= TELLS and whole}


def _shows(share: tuple[float, float] | None, usually: float) -> bool:
    return share is not None and share[0] >= SHOWN and share[1] <= GROWN * usually


def _most(device: torch.device) -> int:
    return MOST_ELEMENTS if device.type == "cpu" else MOST_ON_GPU


def _tried(reference: SeededReference, given: Sequence[torch.Tensor]) -> Iterator[Moved]:
    """What may make a gate keep, the mildest first: all of an input or of a flat parameter moved, then the parts of a gate's
    biases, and what may be a matrix at last."""
    model = reference.model(0)
    state = [(Moved(None, name), t) for name, t in free_parameters(reference, model).items()]
    inputs = [(Moved(place), given[place]) for place in movable(given)]
    flat = [one for one in state if one[1].dim() <= 1]
    yield from _all_of([*inputs, *flat][:MOST_TENSORS])
    for parts in (4, 3, 2):
        biases = [one for one, t in flat[:MOST_TENSORS] if t.numel() % parts == 0 and t.numel() > parts]
        for shift in SHIFTS[:2]:
            yield from (
                replace(one, shift=by, part=part, parts=parts)
                for by in (shift, -shift) for part in range(parts) for one in biases
            )  # fmt: skip
    yield from _all_of([one for one in state if one[1].dim() > 1][:MOST_TENSORS])


def _all_of(targets: Sequence[tuple[Moved, torch.Tensor]]) -> Iterator[Moved]:
    """Ways to move all of one of these tensors."""
    for shift in SHIFTS:
        yield from (replace(one, shift=by) for by in (shift, -shift) for one, _ in targets)
    for one, tensor in targets:
        yield replace(one, scale=PRESSED)
        if tensor.numel() and bool(((tensor >= 0) & (tensor <= 1)).all()):
            yield replace(one, scale=PRESSED, shift=1.0 - PRESSED)
