"""Finds which inputs get rows that are tiny or below zero, and along which axes: the reference is called with them, and must bear
it.

It bears rows that it treats on their own: what these change in an output, no other row changes. So a sum over columns has rows
along the other axis. And an output may not grow by much, because what is large hides what is small.

Nor may rows be so small that the reference itself does not know its answer. Example: indices of the largest of 64 probabilities
that are all 1/64 and a millionth of it. Then rows lie below zero alone.

Tiny rows show numbers of the reference's own, such as an eps. Where it has none, so that its answers keep their proportions if
all of an input is tiny, rows are only small: tiny ones would show that a kernel guards a division by 1e-8. Source: ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.judging.errors.own_error import undecided
from rlkernel.evaluator.judging.inputs.edges import TINY, with_rows_of
from rlkernel.evaluator.judging.inputs.stress import Change, changed, root_mean_square, with_edges
from rlkernel.evaluator.judging.references.reference_calls import call, exact_of_copy, mapped, tensors_of
from rlkernel.evaluator.messages.judgement import Edge
from rlkernel.evaluator.program.codes import equal_or_wrong, holds_numbers, valued

MOST = 8
"""The most calls of a reference, enough for a product's two operands."""
SHARED = 0.05
"""The share of what rows change in an output that other rows may change, too."""
ALIKE = 1e-3
"""Difference, relative to |element| + root mean square, up to which an element stays as it is."""
GROWTH = {torch.float16: 2.0, torch.bfloat16: 2.0}
"""How much larger an output's root mean square may be where bounds are wide."""
USUAL_GROWTH = 4.0
"""How much larger it may be in other dtypes."""
LARGER = 4.0
"""Factor on rows of another draw, so that all maxima lie in them."""
PROPORTIONAL = 1e-3
"""How far answers to a tiny input may be from a power of what it is multiplied by, relative."""
FEW = 16
"""Elements up to which an output is a total, such as a loss, in which no row stands on its own."""


class _Enough(Exception):
    """The reference was called often enough."""


@dataclass
class _Calls:
    """Calls of a reference whose inputs have such rows."""

    model: nn.Module
    inputs: list[Any]
    others: list[Any]
    """Another draw of the inputs, from which rows are taken."""
    usual: Sequence[Change | None]
    """What is done to each input besides."""
    seed: int
    left: int = MOST

    def outputs(self, edges: Sequence[Edge], around: Edge | None = None) -> list[torch.Tensor]:
        """What the reference gives where these rows are tiny or below zero. around: rows of one input beside which all others
        come from the other draw."""
        if not self.left:
            raise _Enough
        self.left -= 1
        given = changed(mapped(self.inputs, torch.clone), with_edges(self.usual, edges))
        if around is not None:
            others = tensors_of(changed(mapped(self.others, torch.clone), self.usual))
            here = tensors_of(given)[around.place]
            here.copy_(with_rows_of(others[around.place].mul_(LARGER), here, around))
        return self._answers(given)

    def where_tiny(self, place: int) -> list[torch.Tensor]:
        """What the reference gives where all of one input is as small as the tiniest rows."""
        return self._answers(self._multiplied(self.inputs, (place,), TINY[-1]))

    def undecided(self, places: Sequence[int], factor: float) -> bool:
        """Whether whole numbers are others in float64, of one of the two draws, where the inputs at these places are multiplied
        by a factor. Where the reference does not run there, none is known to be."""
        for drawn in (self.inputs, self.others):
            given = self._multiplied(drawn, places, factor)
            exact = exact_of_copy(self.model, given, self.seed)
            if exact is not None and undecided(tensors_of(call(self.model, given, self.seed)), exact):
                return True
        return False

    def _multiplied(self, drawn: list[Any], places: Sequence[int], factor: float) -> list[Any]:
        """Arguments as usual, of which those at these places are multiplied as a whole."""
        given = changed(mapped(drawn, torch.clone), self.usual)
        for place in places:
            tensors_of(given)[place].mul_(factor)
        return given

    def _answers(self, given: list[Any]) -> list[torch.Tensor]:
        return [valued(t) for t in mapped(tensors_of(call(self.model, given, self.seed)), torch.clone)]


def edges(
    model: nn.Module, drawn: Sequence[int], inputs: list[Any], others: list[Any], usual: Sequence[Change | None], seed: int
) -> tuple[Edge, ...]:
    """The rows that are tiny or below zero in the inputs at the places `drawn` among the tensors of a call.

    inputs, others: as their author draws them, twice; usual: what is done to them besides. None are named where the reference
    refuses such arguments, or gives NaN even without such rows. The model's state changes."""
    calls, found = _Calls(model, inputs, others, usual, seed), list[Edge]()
    try:
        before = last = calls.outputs([])
        if any(bool(torch.isnan(output).any()) for output in before):
            return ()
        for place in drawn:
            edge, outputs = _borne(calls, place, found, last, before)
            if edge is not None:
                found.append(edge)
                last = outputs
    except _Enough:
        pass
    except Exception:  # a reference may refuse such inputs in its own way
        return ()
    if found and any(equal_or_wrong(output.dtype) for output in before) and not _decided(calls, found):
        return tuple(replace(edge, tiny=False) for edge in found if edge.low)
    return tuple(replace(edge, small=_keeps_proportions(calls, edge.place, before)) for edge in found)


def _keeps_proportions(calls: _Calls, place: int, usual: Sequence[torch.Tensor]) -> bool:
    """Whether each output is multiplied by a power of what an input is multiplied by as a whole, 0 included."""
    try:
        return all(map(_is_multiple, calls.where_tiny(place), usual))
    except Exception:  # a reference may refuse such inputs in its own way, and what is 0 has no power
        return False


def _is_multiple(now: torch.Tensor, before: torch.Tensor) -> bool:
    if now.shape != before.shape or not holds_numbers(before):
        return torch.equal(now, before)
    x, y = before.flatten().float(), now.flatten().float()
    factor = float(y @ x) / float(x @ x)
    twice = 2.0 * math.log(factor, TINY[-1])  # roots have half a power
    is_power = abs(twice - round(twice)) <= PROPORTIONAL
    return is_power and float((y - factor * x).norm()) <= PROPORTIONAL * float(y.norm())


def _decided(calls: _Calls, edges: Sequence[Edge]) -> bool:
    """Whether whole numbers that the reference gives for what is tiny are those of float64, if they are for what is not. All of
    an input is tiny here: a few rows may be told apart by chance, and by another kernel not."""
    places = [edge.place for edge in edges]
    try:
        return not calls.undecided(places, TINY[-1]) or calls.undecided(places, 1.0)
    except Exception:  # a reference may refuse such inputs in its own way
        return False


def _borne(
    calls: _Calls, place: int, found: Sequence[Edge], last: list[torch.Tensor], usual: list[torch.Tensor]
) -> tuple[Edge | None, list[torch.Tensor]]:
    """The hardest rows of one input that are borne beside those `found`, with which the reference gave `last`; and what it gives
    with them. None if none are."""
    tensor = tensors_of(calls.inputs)[place]
    ordered = tensor.dtype.itemsize <= 2 and not all(output.is_floating_point() for output in usual)
    for axis in _axes(tensor):
        # Half precision has equal numbers that far below zero, of which any is the largest.
        kinds = (False,) if ordered or tensor.shape[axis] == 2 else (True, False)
        moved = _differences(calls.outputs(found, Edge(place, axis, kinds[0])), last)
        if any(one is not None and bool(one.all()) for one in moved):
            continue  # no row stands on its own
        for low in kinds:
            edge = Edge(place, axis, low)
            outputs = calls.outputs([*found, edge])
            if not _apart(_differences(outputs, last), moved):
                break  # nor are other rows along this axis
            if _as_large(outputs, usual):
                return edge, outputs
    return None, last


def _axes(tensor: torch.Tensor) -> list[int]:
    """The axes of an input that may have such rows. Axes of two come last: the two kinds of rows would be all of them. None of
    matrices that are symmetric, as a reference may need them."""
    if tensor.dim() > 1 and tensor.shape[-1] == tensor.shape[-2] and torch.equal(tensor, tensor.mT):
        return []
    axes = [axis for axis, size in enumerate(tensor.shape) if size > 1 and tensor.stride(axis)]
    return sorted(axes, key=lambda axis: tensor.shape[axis] == 2)


def _differences(now: Sequence[torch.Tensor], before: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    """Which elements of each output differ; None for an output of few elements, and all where its shape does."""
    return [_different(a, b) if b.numel() > FEW else None for a, b in zip(now, before, strict=True)]


def _different(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    if now.shape != before.shape:
        return torch.ones_like(before, dtype=torch.bool)
    if not holds_numbers(before):
        return now != before
    limit = before.abs().float().add_(_size(before)).mul_(ALIKE)
    return ~(((now.float() - before.float()).abs_() <= limit) | (now == before))


def _apart(changed_here: Sequence[torch.Tensor | None], elsewhere: Sequence[torch.Tensor | None]) -> bool:
    """Whether hardly anything differs in both."""
    return all(
        int((one & other).sum()) <= SHARED * int(one.sum())
        for one, other in zip(changed_here, elsewhere, strict=True)
        if one is not None and other is not None
    )


def _as_large(outputs: Sequence[torch.Tensor], usual: Sequence[torch.Tensor]) -> bool:
    """Whether no output is much larger than usual, or less finite."""
    for now, before in zip(outputs, usual, strict=True):
        if holds_numbers(before) and before.numel():
            if int(torch.isfinite(now).sum()) < int(torch.isfinite(before).sum()):
                return False
            if not _size(now) <= GROWTH.get(before.dtype, USUAL_GROWTH) * max(_size(before), 1e-30):
                return False
    return True


def _size(tensor: torch.Tensor) -> float:
    """The root mean square where what is not finite counts as zero."""
    return root_mean_square(tensor.masked_fill(~torch.isfinite(tensor), 0.0))
