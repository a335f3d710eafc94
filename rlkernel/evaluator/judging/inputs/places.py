"""Finds what a stressed round does to single inputs: which zeros stay, which masks get holes, which numbers may be uneven, and
which rows may be tiny or below zero.

A mask that lets everything through may be ignored, as zeros may. Example: `mask = torch.ones(B, L, dtype=torch.bool)`, and a mean
over what it leaves. It gets holes where the reference runs so and stays as finite as it is. Indices that are all zero name one
row of a table, and whoever always takes that row would be right: some become 1, where that is another answer. Inputs that are
copies of one another are set apart. Source: ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs import fixed
from rlkernel.evaluator.judging.inputs.bearing import Usual, usual_call
from rlkernel.evaluator.judging.inputs.edge_search import edges
from rlkernel.evaluator.judging.inputs.stress import (
    UNEVEN,
    all_first,
    all_zero,
    changes,
    holds_one,
    is_mask,
    side,
    stressed,
)
from rlkernel.evaluator.judging.inputs.unevenness import drawn_one_by_one
from rlkernel.evaluator.judging.inputs.unread import MOST, alike, unread_zeros
from rlkernel.evaluator.judging.references.reference_calls import call, holds_truths, mapped, state_of, tensors_of
from rlkernel.evaluator.messages.judgement import NOWHERE, Places, Stress
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.operators import by_name

DRAWS = 16
"""Draws in which truth values of which one is rare are looked for."""
MOST_DRAWN = 1 << 20
"""The most elements that all inputs have together for that: of more, one draw shows them."""
FRESH = frozenset(
    f"aten::{name}" for name in ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
)
"""The operators that give memory which nobody has written."""

LOOKED_UP = {"aten::searchsorted": "sorted_sequence", "aten::bucketize": "boundaries"}
"""The operators that look up between edges, and what these are called among their arguments."""


def places(
    model: Callable[[], nn.Module], draw: Callable[[int], list[Any]], seeds: tuple[int, int, int], stress: Stress,
    *, moves: bool = True,
) -> Places:  # fmt: skip
    """What is done to the tensors among forward's arguments.

    model: a new module, the same one each time; draw: arguments from a seed; seeds: of these arguments, of other ones, and of
    forward; moves: whether consecutive numbers may lie one farther. A GPU is waited for."""
    if stress is Stress.NONE:
        return NOWHERE
    seed, other, forward = seeds
    given = tensors_of(draw(seed))
    again = tensors_of(draw(other)) if stress in UNEVEN or any(map(fixed.may_be_fixed, given)) else []
    drawn = _drawn(given, again) if stress in UNEVEN else ()
    same, numbered = fixed.fixed_masks(given, again), fixed.fixed_places(given, again)
    consecutive = [place for place in numbered if fixed.is_consecutive(given[place])]
    twins = fixed.copies(given)
    of_whole = fixed.drawn_whole(given, again)
    whole, rows = fixed.whole_copies(given, of_whole), fixed.repeated(given, of_whole)
    positions = fixed.repeated(given, consecutive)
    del again
    masks = [place for place, tensor in enumerate(given) if is_mask(tensor) and not _may_count(tensor, given)]
    zeros = any(map(all_zero, given))
    rare = _rare_truths(given, draw, other)
    first = frozenset(place for place in masks if all_first(given[place]))
    del given  # the calls that follow need the memory
    kept = unread_zeros(model, partial(draw, seed), forward, stress) if zeros else frozenset()
    masks += [place for place in rare if place not in kept]
    found = Places(tuple(sorted(kept)), _holed(model, partial(draw, seed), forward, masks, first), drawn)
    if same or numbered or twins or whole or rows:
        bearing = _Bearing(model, partial(draw, seed), forward)

        def bears(turned: tuple[int, ...], moved: tuple[int, ...]) -> bool:
            return bearing.bears(Places(turned=turned, moved=moved))

        pairs = ((*whole,), (*rows, *positions)), ((*whole,), rows), ((), positions), ((), ())
        tries = dict.fromkeys(Places(apart=(*twins, *of_copies), rows=of_rows) for of_copies, of_rows in pairs)
        apart = next((one for one in tries if one != NOWHERE and bearing.bears(one)), NOWHERE)
        numbered = tuple(place for place in numbered if place not in apart.rows)
        turned, moved = fixed.borne(same, numbered, consecutive if moves else (), bears)
        found = replace(found, turned=turned, moved=moved, apart=apart.apart, rows=apart.rows)
    if stress is not Stress.EXTREME or not drawn:
        return found
    inputs = draw(seed)
    return replace(found, edges=edges(model(), drawn, inputs, draw(other), changes(inputs, stress, found), forward))


def _rare_truths(given: list[torch.Tensor], draw: Callable[[int], list[Any]], other: int) -> list[int]:
    """The places of inputs that hold zeros alone, or ones, as floating-point numbers, and both in some other draw: truth values
    of which one is rare, such as the ends of episodes."""
    alike = [place for place, t in enumerate(given) if all_zero(t) or (holds_one(t) and bool((t == 1).all()))]
    if not alike or sum(tensor.numel() for tensor in given) > MOST_DRAWN:
        return []
    found = set[int]()
    for step in range(DRAWS):
        drawn = tensors_of(draw(other ^ step))
        found |= {place for place in alike if place < len(drawn) and holds_truths(drawn[place])}
    return sorted(found)


def _may_count(tensor: torch.Tensor, given: list[torch.Tensor]) -> bool:
    """Whether a single whole number may say how many parts another input has: it divides its elements. Kernels bound their
    programs by such numbers, and another one would be of another input. Example: 32 tiles of 256 elements each."""
    if tensor.numel() != 1 or tensor.dtype is torch.bool or (number := int(tensor.item())) < 2:
        return False
    return any(other.numel() % number == 0 for other in given if other is not tensor)


class _Garbage(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Fresh memory holds no numbers, so that what a call leaves unwritten is not finite. Example: rows of a result that shorter
    lengths do not reach, in which each side would find something else. For the same reason it refuses to look up between edges
    that are in no order."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (edges := LOOKED_UP.get(func._schema.name)) is not None:
            given = by_name(func, args, kwargs or {})
            if not _rises(given[edges], given.get("sorter")):
                raise ValueError("edges in no order")
        found = func(*args, **(kwargs or {}))
        if func._schema.name in FRESH and holds_numbers(found):
            found.fill_(torch.nan)
        return found


def _rises(edges: torch.Tensor, order: torch.Tensor | None) -> bool:
    """Whether edges rise along their last axis, in the order that a lookup may be given besides."""
    if order is not None:
        edges = edges.gather(-1, order)
    return bool((edges[..., 1:] >= edges[..., :-1]).all())


def _drawn(inputs: list[torch.Tensor], others: list[torch.Tensor]) -> tuple[int, ...]:
    pairs = zip(inputs, others, strict=False)
    return tuple(place for place, (one, other) in enumerate(pairs) if side(one) and drawn_one_by_one(one, other))


def _holed(
    model: Callable[[], nn.Module], draw: Callable[[], list[Any]], seed: int, masks: list[int], first: frozenset[int]
) -> tuple[int, ...]:
    """The masks that get holes: each alone leaves the outputs of a call finite, and in their shapes. Those of zeros, which are
    `first`, must change what a call gives besides: they may be memory for a result, into which a kernel adds."""
    if not 0 < len(masks) <= MOST:
        return ()

    def matters(place: int) -> bool:
        before = stressed(draw(), Stress.VARIED, Places(holed=(place,)))
        try:
            (usual, after), (found, left) = (
                _results(model(), one, seed) for one in (stressed(draw(), Stress.VARIED), mapped(before, torch.clone))
            )
        except Exception:  # the reference refuses such inputs, as above
            return False
        given = tensors_of(before)
        if not len(given) == len(after) == len(left):  # it takes tensors out of a list that it is given
            return False
        written = [n for n, (was, now) in enumerate(zip(given, left, strict=True)) if not alike([was], [now])]
        return not alike([*usual, *(after[n] for n in written)], [*found, *(left[n] for n in written)])

    bearing = _Bearing(model, draw, seed)
    borne = [place for place in masks if bearing.bears(Places(holed=(place,)))]
    return tuple(place for place in borne if place not in first or matters(place))


class _Bearing:
    """Whether a reference bears what is done to single inputs beside the usual scaling, in memory that holds no numbers."""

    def __init__(self, model: Callable[[], nn.Module], draw: Callable[[], list[Any]], seed: int) -> None:
        self._model, self._draw = model, draw
        garbage = _Garbage()  # type: ignore[no-untyped-call]
        try:
            usual: Usual | None = usual_call(model(), self._changed(NOWHERE), garbage, seed=seed)
        except Exception:  # a reference may refuse such inputs in its own way
            usual = None
        self._usual = usual

    def bears(self, given: Places) -> bool:
        if self._usual is None:
            return False
        garbage = _Garbage()  # type: ignore[no-untyped-call]
        return self._usual.borne(self._model(), partial(self._changed, given), garbage)

    def _changed(self, given: Places) -> list[Any]:
        return stressed(self._draw(), Stress.VARIED, given)


def _results(model: nn.Module, inputs: list[Any], seed: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The outputs of a call with the state behind them, and its arguments afterwards."""
    outputs = tensors_of(call(model, inputs, seed))
    return [*outputs, *state_of(model).values()], tensors_of(inputs)
