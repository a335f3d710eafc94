"""Calls of one candidate, each on fresh weights and inputs, and what the reference makes of the same seeds.

Candidate first, answer later: while a candidate's kernels run, no expected output exists. Inputs and weights are drawn anew from
their seeds afterwards, compared with what the candidate was given, and only then does the reference compute the answer.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from rlkernel.evaluator.gpu.checks import Checks
from rlkernel.evaluator.gpu.closer import AFTER, Changed
from rlkernel.evaluator.gpu.fused import Fused
from rlkernel.evaluator.gpu.kinds import Kind, name_of
from rlkernel.evaluator.gpu.problem import GpuProblem
from rlkernel.evaluator.gpu.stopwatch import settle
from rlkernel.evaluator.gpu.subject import Outcome, Subject
from rlkernel.evaluator.judging.errors.own_error import OwnError
from rlkernel.evaluator.judging.errors.tolerance import of_state, widest
from rlkernel.evaluator.judging.references.flags import judging
from rlkernel.evaluator.judging.references.reference_calls import call, draw_seed, state_of, tensors_of
from rlkernel.evaluator.messages.gpu import Known
from rlkernel.types import Precision


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of one round: of weights, of inputs, of what `forward` draws, and of the inputs of calls that prepare."""

    init: int
    inputs: int
    forward: int
    first: int


@dataclass(frozen=True, slots=True)
class Round:
    """One call of the candidate, and what the reference made of the same seeds."""

    kind: Kind
    seeds: Seeds
    outcome: Outcome
    expected: Any
    """What the reference returned."""
    state: dict[str, Changed]
    """The parameters and buffers that the reference's forward changes, after the call, as far as the candidate has them."""
    seconds: float
    """Wall clock from before the module was constructed until the call's kernels had ended."""


@dataclass
class Rounds:
    """One candidate beside its problem's reference."""

    problem: GpuProblem
    known: Known
    fused: Fused
    subject: Subject
    other: Subject | None
    """The candidate in the other of train and eval mode, where it does other work there."""
    precision: Precision
    seconds: float
    """Wall clock that the rounds, or one trial, may take."""

    def prepare(self) -> None:
        """Memory is laid out, configurations are chosen. Raises Hung, NoConfig."""
        for subject, mode in ((self.subject, False), (self.other, True)):
            if subject is not None:
                seed = draw_seed()
                subject.lay_out(self.problem.init_tensors(seed), self.problem.shapes())
                if subject.tunable:
                    inputs = tensors_of(self.problem.inputs(seed))
                    first = tensors_of(self.problem.first_inputs(subject.calls_before, seed))
                    subject.construct(self.problem.init_tensors(seed), seed, self.problem.model(seed, other=mode), first)
                    subject.tune(inputs, seed)

    def round(self, checks: Checks, subject: Subject, kind: Kind) -> Round:
        """Enqueue one round of fresh weights and inputs, and its judgement."""
        seeds = Seeds(draw_seed(), draw_seed(), draw_seed(), draw_seed())
        begun = time.perf_counter()
        outcome = self.call(subject, seeds, kind)
        settle(self.seconds)  # here, because making memory may wait for a kernel that never ends
        seconds = time.perf_counter() - begun
        checks.zones(*outcome.guards)
        # The answer did not exist until here.
        given = self.problem.inputs(seeds.inputs, kind)
        model = self._reference(seeds, kind)
        with judging(self.precision):
            expected = call(model, given, seeds.forward)
        found, wanted = checks.outputs(outcome.output, expected, self.known.allowed[name_of(kind)], kind.note)
        checks.own(found, outcome.inputs, wanted, tensors_of(given))
        before = given if self.known.keeps_inputs else self.problem.inputs(seeds.inputs, kind)
        checks.inputs(outcome.inputs, tensors_of(given), tensors_of(before), self.known.fates, found, wanted)
        state = {} if kind.other else self._state_alike(checks, subject, model, wanted, kind)
        return Round(kind, seeds, outcome, expected, state, seconds)

    def _reference(self, seeds: Seeds, kind: Kind) -> nn.Module:
        """The reference's module of a round, after as many calls as prepare the candidate's."""
        return self._prepared(self.problem.model_for(kind, seeds.init), seeds, kind)

    def _prepared(self, model: nn.Module, seeds: Seeds, kind: Kind) -> nn.Module:
        usual = self.subject.calls_before
        more = 0 if self.other is None else self.other.calls_before - usual
        return self.problem.called(model, usual, more, seeds.first, flip=kind.other)

    def _state_alike(
        self, checks: Checks, subject: Subject, model: nn.Module, outputs: list[torch.Tensor], kind: Kind
    ) -> dict[str, Changed]:  # fmt: skip
        """State that the reference's forward changes, such as running statistics, is changed in the same way."""
        after, allowed, found = state_of(model), self.known.allowed[name_of(kind)], {}
        for name in self.known.changes_state:
            if name in after:
                own = subject.state.get(name)
                if own is None:
                    checks.missing(name)
                else:
                    limit = of_state(after[name].dtype, OwnError(), outputs, allowed, Precision.STRICT)
                    limit = widest(limit, self.known.of_state.get(name_of(kind), {}).get(name, limit))
                    checks.state_alike(own, after[name], AFTER.format(name=name), limit, kind.note)
                    found[name] = Changed(own, after[name], limit)
        return found

    def call(
        self, subject: Subject, seeds: Seeds, kind: Kind, skip: frozenset[int] = frozenset(), *, tuning: bool = False
    ) -> Outcome:
        """One call of a candidate that was constructed anew, without the functions in `skip`. `tuning`: as its first one, in
        which autotuners run."""
        model = self.problem.model_for(kind, seeds.init)
        if kind.other:
            model.train(not model.training)
        first = tensors_of(self.problem.first_inputs(subject.calls_before, seeds.first))
        with judging(self.precision) if self.known.blurred else nullcontext():
            subject.construct(self.problem.init_tensors(seeds.init), seeds.init, model, first)
            return subject.forward(tensors_of(self.problem.inputs(seeds.inputs, kind)), seeds.forward, skip=skip, tuning=tuning)
