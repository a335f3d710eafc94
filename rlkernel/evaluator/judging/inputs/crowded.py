"""Choices that nearly all fall on one, for references that choose: the expert of a token, the bucket of a number.

What a gate chooses spreads evenly in every draw, so that whoever leaves room for twice the fair share is always right. A
reference is watched for how much of its rows each choice takes. Where one input or one of a gate's biases, moved, lets one of
them take much more than usually, that is judged in a round of its own. Source: ours.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs.bearing import usual_call
from rlkernel.evaluator.judging.inputs.equals import WHOLE
from rlkernel.evaluator.judging.inputs.moved import MOST_TENSORS, SHIFTS, free_parameters, movable, move_state, with_moved
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import tensors_of
from rlkernel.evaluator.messages.judgement import Moved
from rlkernel.evaluator.program.operators import base_name, by_name, operators_of
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.program.value_lengths import MASKS

WHERE = {"nonzero", "nonzero_static", "index", "index_put", "masked_select"}
"""Operators of which a mask says what takes part."""
EQUAL = {"eq"}
SCATTERS = {"scatter", "scatter_add", "index_add"}
"""Operators whose index says what each row has chosen."""
FEWEST = 16
"""The elements of the smallest mask that is looked at: fewer spread unevenly by chance."""
MOST_BIASES = 256
"""The most numbers of a parameter, or columns of an input, of which one is moved alone."""
GROWN = 1.5
"""How many times its usual share one choice takes at least where it is crowded."""


class _Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the largest share of a mask that is true, of those that tell some of a kind from others."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.masks = 0
        self.largest = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        made, name = func(*args, **(kwargs or {})), base_name(str(func))
        if name in WHERE:
            self._see([one for one in tensors_of(list(by_name(func, args, kwargs).values())) if one.dtype in MASKS])
        elif name in EQUAL and args[0].dtype in WHOLE:
            self._see([made])
        elif name == "bincount":
            self._count(made)
        elif name in SCATTERS and (index := by_name(func, args, kwargs)["index"]).numel() >= FEWEST:
            self._count(index.unique(return_counts=True)[1])
        return made

    def _count(self, counts: torch.Tensor) -> None:
        """Notes how many rows have taken each choice."""
        self.masks += counts.numel()
        if counts.numel() and counts.any():
            self.largest = max(self.largest, float(counts.max() / counts.sum()))

    def _see(self, masks: Sequence[torch.Tensor]) -> None:
        for mask in masks:
            if mask.numel() >= FEWEST:
                self.masks += 1
                self.largest = max(self.largest, float(mask.count_nonzero()) / mask.numel())


def may_crowd(program: Program) -> bool:
    """Whether a reference may choose between rows."""
    return bool(operators_of(program) & (WHERE - {"index", "index_put"} | EQUAL | SCATTERS | {"bincount"}))


def crowded_of(reference: SeededReference, *, until: float = math.inf) -> tuple[Moved, ...]:
    """What lets one choice take most of what there is to take; empty where that is not found, or usual. No further way is tried
    after `until`, on the monotonic clock. Whatever the reference raises at its own inputs is raised."""
    usual = usual_call(reference.model(0), reference.inputs(0), usually := _Watching())
    best, most = None, GROWN * usually.largest
    for what in _tried(reference) if usually.masks > 1 and most < 1.0 and usually.largest else ():
        if time.monotonic() >= until:
            break
        inputs = with_moved(reference.inputs(0), what)
        if usual.borne(move_state(reference.model(0), what), inputs, seen := _Watching()) and seen.largest > most:
            best, most = what, seen.largest
    return () if best is None else (best,)


def _tried(reference: SeededReference) -> Iterator[Moved]:
    """Ways to let one choice take more, the mildest first: a bias of one alone, a column of an input, then all of an input."""
    flat = {name: t.numel() for name, t in free_parameters(reference, reference.model(0)).items() if t.dim() == 1}
    biases = [(name, count) for name, count in flat.items() if 1 < count <= MOST_BIASES][:MOST_TENSORS]
    given = tensors_of(reference.inputs(0))
    inputs = movable(given)[:MOST_TENSORS]
    columns = [
        (place, given[place].shape[-1])
        for place in inputs
        if given[place].dim() > 1 and 1 < given[place].shape[-1] <= MOST_BIASES
    ]
    for shift, (name, count) in itertools.product(SHIFTS, biases):
        yield Moved(None, name, shift=shift, part=count // 2, parts=count)
    for shift, (place, count) in itertools.product(SHIFTS, columns):
        yield Moved(place, shift=shift, part=count // 2, parts=count, axis=-1)
    for shift, place in itertools.product(SHIFTS, inputs):
        yield from (Moved(place, shift=by) for by in (shift, -shift))
