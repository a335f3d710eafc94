"""Compares what a candidate's process gave with the reference on the same seeds, when that process is gone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from rlkernel.evaluator import wire
from rlkernel.evaluator.judging.construction import Construction, Round
from rlkernel.evaluator.judging.errors.comparison import Match, bits, compare_structure, compare_tensor
from rlkernel.evaluator.judging.errors.kernelbench import closeness, worse
from rlkernel.evaluator.judging.references.plan import Terms
from rlkernel.evaluator.judging.references.reference_calls import call
from rlkernel.evaluator.judging.rounds import compare_round
from rlkernel.evaluator.messages.children import RoundOutputs
from rlkernel.evaluator.messages.judgement import Stress, Tolerance
from rlkernel.evaluator.messages.native import Draw
from rlkernel.evaluator.native.calls import PlacedReference, sums_of
from rlkernel.evaluator.program.tensors import flatten
from rlkernel.evaluator.wire import TensorSpan
from rlkernel.types import Closeness, Precision

BOTH_ERR = 2.0
"""A timed call is compared with the reference in its own dtype, not with float64: both may err."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the candidate's process said of one call; untrusted."""

    draw: Draw
    outputs: RoundOutputs
    body: bytes
    sums: tuple[int, ...] = ()
    """What it said the sums of its outputs were, before it sent them."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What all calls together have shown."""

    matches: bool = True
    detail: str = ""
    close: Closeness = Closeness.TIGHT
    """How KernelBench compares the plain rounds."""
    error: float = 0.0
    inputs_changed: bool = False
    allowed: tuple[Tolerance, ...] = field(default=())
    """What the first round allows of each output."""

    def without(self, detail: str) -> Comparison:
        """The same with a miss; the first one is told."""
        return replace(self, matches=False, detail=self.detail or detail)


class _Told(random.Random):
    """Gives seeds that are known already where a `Construction` would draw its own."""

    def __init__(self) -> None:
        super().__init__()
        self.seeds: list[int] = []

    def getrandbits(self, k: int, /) -> int:
        return self.seeds.pop(0)


def compare_rounds(problem: PlacedReference, given: Sequence[Given], precision: Precision, *, state: bool = True) -> Comparison:
    """Compare the rounds in the order in which they were called. `state`: also what forward changes of the module's state.

    Raises what the reference raises, and wire.BadMessage."""
    found = Comparison()
    construction: Construction | None = None
    told = _Told()
    for one in given:
        draw = one.draw
        if construction is None or not draw.again:
            told = _Told()
            told.seeds.append(draw.init_seed)
            construction = Construction(problem, Terms(precision), told, other=draw.other, perturbed=draw.perturbed)
        told.seeds += [draw.forward_seed, draw.input_seed]
        drawn = construction.round(draw.stress, draw.places)
        if not state:
            drawn = replace(drawn, expected=replace(drawn.expected, state={}))
        tensors = _tensors(one.outputs.tensors, one.body, problem.device)
        found = _with_round(found, one, drawn, tensors, problem.device)
        if not found.allowed:
            found = replace(found, allowed=_widened(drawn))
    return found


def _with_round(found: Comparison, one: Given, drawn: Round, tensors: list[torch.Tensor], device: torch.device) -> Comparison:
    """What was found, and one more round. A plain one is also compared as KernelBench does."""
    inputs = _tensors(one.outputs.inputs, one.body, device)
    state = {name: wire.tensor(span, one.body).to(device) for name, span in one.outputs.state.items()}
    expected = drawn.expected
    if one.draw.stress is Stress.NONE and not one.draw.perturbed and not one.draw.other:
        found = replace(
            found, close=worse(found.close, closeness(tensors, expected.reference)),
            error=max(found.error, _error(expected.reference, tensors)),
            inputs_changed=found.inputs_changed or _changed(inputs, expected.inputs_before),
        )  # fmt: skip
    if len(inputs) != len(expected.inputs_before) or not len(one.outputs.overlapping) == len(one.outputs.lent) == len(tensors):
        raise wire.BadMessage("another number of tensors")
    match = compare_round(one.outputs.structure, tensors, one.outputs.overlapping, one.outputs.lent, inputs, state, expected)
    return found if match.matches else found.without(match.detail)


def compare_timed(problem: PlacedReference, warm_ups: Sequence[Draw], given: Sequence[Given], found: Comparison) -> Comparison:
    """Compare the timed calls, all of one module, whose first calls were not kept. Raises as `compare_rounds` does."""
    model = problem.drawn_model(warm_ups[0])
    for draw in warm_ups:
        call(model, problem.drawn_inputs(draw), draw.forward_seed)
    for one in given:
        wanted: list[torch.Tensor] = []
        structure = flatten(call(model, problem.drawn_inputs(one.draw), one.draw.forward_seed), wanted)
        tensors = _tensors(one.outputs.tensors, one.body, problem.device)
        if sums_of(tensors) != one.sums:
            return found.without("a timed call returned something else than it had when the clock stopped")
        match = _timed_match(one.outputs.structure, tensors, one.outputs.overlapping, structure, wanted, found.allowed)
        if not match.matches:
            return found.without(f"{match.detail} (in a timed call)")
    return found


def _timed_match(
    structure: Any, tensors: Sequence[torch.Tensor], overlapping: Sequence[bool], expected: Any, wanted: Sequence[torch.Tensor],
    allowed: Sequence[Tolerance],
) -> Match:  # fmt: skip
    mismatch = compare_structure(structure, expected)
    if mismatch or len(tensors) != len(wanted) or len(overlapping) != len(tensors) or len(allowed) != len(wanted):
        return Match(False, mismatch or "another number of output tensors")
    for index, (found, reference, limit) in enumerate(zip(tensors, wanted, allowed, strict=True)):
        where = "output" if len(tensors) == 1 else f"output {index}"
        match = compare_tensor(found, reference, reference, allowed=limit, overlapping=overlapping[index], where=where)
        if not match.matches:
            return match
    return Match(True)


def _widened(drawn: Round) -> tuple[Tolerance, ...]:
    """What is allowed from the reference where the round says what is allowed from the exact result."""
    found = []
    for index, limit in enumerate(drawn.expected.allowed):
        other = drawn.expected.beside[index][1] if index in drawn.expected.beside else limit
        found.append(
            replace(
                limit, norm=BOTH_ERR * max(limit.norm, other.norm), element=min(1.0, BOTH_ERR * max(limit.element, other.element))
            )
        )
    return tuple(found)


def _error(expected: Sequence[torch.Tensor], found: Sequence[torch.Tensor]) -> float:
    """The norm of the difference over the reference's norm; the plain norm where that is 0."""
    usable = [(a, b.to(a.dtype)) for a, b in zip(expected, found, strict=False) if a.shape == b.shape]
    miss = sum(float((a.double() - b.double()).abs().square().sum()) for a, b in usable)
    size = sum(float(a.double().abs().square().sum()) for a, _ in usable)
    return float((miss / size) ** 0.5 if size else miss**0.5)


def _tensors(spans: Sequence[TensorSpan], body: bytes, device: torch.device) -> list[torch.Tensor]:
    return [wire.tensor(span, body).to(device) for span in spans]


def _changed(after: Sequence[torch.Tensor], before: Sequence[torch.Tensor]) -> bool:
    return any(a.shape != b.shape or not torch.equal(bits(a), bits(b)) for a, b in zip(after, before, strict=False))
