"""Labels that never name a large number.

Of `F.log_softmax(x, -1).gather(1, y)` with labels that know nothing of x, each class among 1,000 has a probability of next to
nothing, and whoever leaves out what only likely ones show, such as a term in p^2, or counts no hits, is right. So a reference is
watched for what it takes by whole numbers of one input from each row of another, or of what is made of it element by element or
by a softmax. Where these name the largest number of hardly any row, they do in about half of the rows of a round of its own: what
is named there is as likely as all others together, which amplifies no rounding. Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from rlkernel.evaluator.judging.inputs.bearing import Origins, usual_call
from rlkernel.evaluator.judging.inputs.equals import WHOLE
from rlkernel.evaluator.judging.references.plan import SeededReference
from rlkernel.evaluator.judging.references.reference_calls import mapped_at, tensors_of
from rlkernel.evaluator.messages.judgement import Labelled
from rlkernel.evaluator.program.codes import holds_numbers
from rlkernel.evaluator.program.operators import base_name, by_name, operators_of
from rlkernel.evaluator.program.schema import Program

TAKES = {"gather": "index", "nll_loss_forward": "target", "nll_loss2d_forward": "target"}
"""Operators that take from each row of `self` by whole numbers, and what these are called."""
HARDLY = 0.125
"""The share of rows in which a label may name the largest number, for it to be hardly any."""
SHARE = 0.5
"""The share of rows that get labels of their largest number."""
LIKELY = "labels of the largest number in a row"
"""What stands behind a miss in such a round."""


class _Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes of which inputs an operator takes numbers by those of another input."""

    def __init__(self, inputs: Sequence[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._given = inputs
        self._origins = Origins(inputs)
        self.found = dict[Labelled, None]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        name = base_name(str(func))
        if name in TAKES:
            given = by_name(func, args, kwargs)
            self._look(given["self"], given[TAKES[name]], given.get("dim", min(1, given["self"].dim() - 1)))
        made = func(*args, **(kwargs or {}))
        self._origins.note(func, [*args, *(kwargs or {}).values()], made)
        return made

    def _look(self, taken: torch.Tensor, index: torch.Tensor, dim: int) -> None:
        place, labels = self._origins.of(taken), self._origins.itself(index)
        if place is None or labels is None:
            return
        rows, axis = self._given[place], dim % max(1, taken.dim())
        if rows.shape != taken.shape:  # tokens of a batch, side by side
            if axis != taken.dim() - 1 or not rows.dim() or rows.shape[-1] != taken.shape[-1]:
                return
            axis = rows.dim() - 1
        if rows.numel() == taken.numel() and rows.numel() and self._given[labels].numel() * rows.shape[axis] == rows.numel():
            self.found[Labelled(place, labels, axis)] = None


def may_label(program: Program) -> bool:
    """Whether a reference calls an operator that is watched."""
    return bool(operators_of(program) & TAKES.keys())


def labelled(inputs: list[Any], what: Labelled, seed: int) -> list[Any]:
    """The arguments of forward with an input in about half of whose rows, drawn from `seed`, a label names the largest number."""
    rows, axis = tensors_of(inputs)[what.place], what.axis
    index, names = _index(rows, tensors_of(inputs)[what.labels], axis)
    generator = torch.Generator(rows.device).manual_seed(seed)
    drawn = torch.rand(index.shape, generator=generator, device=rows.device) < SHARE
    larger = rows.float().logsumexp(axis, keepdim=True).to(rows.dtype)
    made = rows.scatter(axis, index, torch.where(names & drawn, larger, rows.gather(axis, index)))
    return mapped_at(inputs, what.place, lambda tensor: torch.empty_like(tensor).copy_(made))


def _index(rows: torch.Tensor, labels: torch.Tensor, axis: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The labels in the shape of rows with one number each, and which of them name one: those to be ignored name none."""
    shape = [*rows.shape[:axis], 1, *rows.shape[axis + 1 :]]
    index = labels.reshape(shape).long()
    names = (index >= 0) & (index < rows.shape[axis])
    return torch.where(names, index, 0), names


def labels_of(reference: SeededReference) -> tuple[Labelled, ...]:
    """The inputs whose rows are taken from by labels that hardly ever name their largest number. Whatever the reference raises at
    its own inputs is raised."""
    model, given = reference.model(0), tensors_of(reference.inputs(0))
    inputs = reference.inputs(0)
    usual = usual_call(model, inputs, watching := _Watching(tensors_of(inputs)))

    def hides(one: Labelled) -> bool:
        rows, labels = given[one.place], given[one.labels]
        if not holds_numbers(rows) or labels.dtype not in WHOLE:
            return False
        index, names = _index(rows, labels, one.axis)
        hits = (rows.gather(one.axis, index) >= rows.amax(one.axis, keepdim=True)) & names
        return float(hits.float().mean()) < HARDLY

    def bears(one: Labelled) -> bool:
        return usual.borne(reference.model(0), lambda: labelled(reference.inputs(0), one, 0))

    return tuple(one for one in watching.found if hides(one) and bears(one))
