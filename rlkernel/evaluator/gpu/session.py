"""One candidate's stay on the GPU.

prepare (tune) -> rounds (judge, liveness: rounds.py) -> trials (time, check every output: trials.py) -> rows (attribution)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

import torch

from rlkernel.evaluator.gpu.checks import Checks, Strayed
from rlkernel.evaluator.gpu.closer import Call, look_closer
from rlkernel.evaluator.gpu.fused_errors import passes
from rlkernel.evaluator.gpu.kinds import Kind, at_usual_inputs, name_of
from rlkernel.evaluator.gpu.liveness import MOST_SPINS, Failing, in_order, live_functions, patience
from rlkernel.evaluator.gpu.problem import step_times
from rlkernel.evaluator.gpu.rounds import Round, Rounds
from rlkernel.evaluator.gpu.stopwatch import Hung, Stopwatch, lost, settle
from rlkernel.evaluator.gpu.subject import Outcome
from rlkernel.evaluator.gpu.trials import Trials, Unmeasured
from rlkernel.evaluator.judging.errors.comparison import Match
from rlkernel.evaluator.judging.errors.kernelbench import closeness
from rlkernel.evaluator.judging.references.flags import judging
from rlkernel.evaluator.judging.references.reference_calls import call, draw_seed, tensors_of
from rlkernel.evaluator.messages.children import StepTime
from rlkernel.evaluator.messages.gpu import Speedup
from rlkernel.evaluator.program.first_call import FIRST_CALL
from rlkernel.evaluator.program.replay import StepFailed
from rlkernel.evaluator.program.schema import Launch
from rlkernel.types import Closeness

STEP_SLACK_US = 4.0
NO_ROOM = ", and the GPU has no memory for a second look"
"""Stands behind a miss of size whose inputs are too large to be looked at once more."""
ATTRIBUTIONS = 4
"""A host that is held up leaves gaps between the steps: then they are timed again, behind a spin three times as long."""


@dataclass
class Session(Rounds):
    """One candidate's stay on the GPU."""

    stopwatch: Stopwatch
    modal: bool
    """Whether the reference differs between train and eval mode."""
    timing_width: float
    """Half of the speedup's 95 % interval, relative, at which trials stop."""
    found: Mapping[int, bool] = field(default_factory=dict)
    """Which functions are live, as far as earlier runners have found it out, see `Task.live`."""
    spins: int = 0
    """How many of these runners it has cost because the rest never ended."""
    worst: float = 0.0
    close: Closeness | None = None
    """How KernelBench would compare an output at the problem's own inputs; None until one was compared."""

    def rounds(self) -> tuple[Match, dict[int, bool], bool]:
        """(match, which functions' launches change the output, whether the miss is in the other mode alone). Raises Strayed.

        Inputs are scaled where the reference allows it: every timed output is checked at the usual scale anyway.
        """
        known = self.known
        kind = Kind(stress=known.stress, perturbed=known.perturbs, plants=known.plants, places=known.places)
        match, live = self._first_round(kind)
        if not match.matches:
            with suppress(torch.OutOfMemoryError):
                plain = self._ordinary()  # what is wrong at the usual scale too is told without mention of another
                match = match if plain.matches else plain
            return match, {}, False
        for further in self._further_kinds(kind):
            checks = Checks(self.fused)
            match = self._judged(checks, self.round(checks, self.subject, further))
            if not match.matches:
                self._look_as_kernelbench()
                return match, {}, False
        if self.modal or self.other is not None:
            checks, kind = Checks(self.fused), Kind(other=True, perturbed=self.known.perturbs)
            match = self._judged(checks, self.round(checks, self.other or self.subject, kind))
            if not match.matches:
                self._look_as_kernelbench()
        return match, live, not match.matches

    def _further_kinds(self, first: Kind) -> Iterator[Kind]:
        """The rounds that follow the `first` kind, in the module's own mode."""
        if self.known.balance is not None:
            yield Kind(balance=self.known.balance)
        if self.known.blurred and first != Kind():
            yield Kind()  # in a timed call hardly anything is told apart where tf32 blurs the answer
        yield from (Kind(shown=one) for one in self.known.shown)
        if self.known.outliers:
            yield Kind(outliers=True)
        yield from (at_usual_inputs(stress, self.known.places) for stress in self.known.mild)

    def _look_as_kernelbench(self) -> None:
        """Note how KernelBench would compare the outputs of a candidate that is wrong elsewhere. It changes no verdict."""
        try:
            self._ordinary()
        except (Strayed, torch.OutOfMemoryError):
            self.close = None

    def _ordinary(self) -> Match:
        """A round at the problem's own inputs, of a candidate that is wrong elsewhere: whether it is wrong there, and whether
        KernelBench would see it."""
        checks = Checks(self.fused)
        one = self.round(checks, self.subject, Kind())
        match = self._judged(checks, one)
        given = self.problem.inputs(one.seeds.inputs)
        expected = call(self._reference(one.seeds, one.kind), given, one.seeds.forward)  # as PyTorch ships it
        self.close = closeness(tensors_of(one.outcome.output), tensors_of(expected))
        return match

    def _first_round(self, kind: Kind) -> tuple[Match, dict[int, bool]]:
        checks = Checks(self.fused)
        first = self.round(checks, self.subject, kind)
        match = self._judged(checks, first)  # before launches are left out, which may cost the process
        if match.matches and self.subject.tunes and self._shows_tuning(first):
            match = Match(False, FIRST_CALL)
        return match, self._live(first) if match.matches else {}

    def _shows_tuning(self, first: Round) -> bool:
        """Whether a round has another output, or leaves another state, where its autotuners have run before it on the same
        tensors. Raises Hung."""
        checks = Checks(self.fused)
        try:
            outcome = self.call(self.subject, first.seeds, first.kind, tuning=True)
            settle(self.seconds)  # here, because making memory may wait for a kernel that never ends
            checks.zones(*outcome.guards)
            change = self._difference(checks, first, outcome)
            state = self.subject.state
            of_state = checks.difference([one.found for one in first.state.values()], [state[name] for name in first.state])
            self._finish(checks)
        except (Strayed, StepFailed):  # what a kernel has changed before leads it astray
            return True
        allowed = max((one.allowed.norm for one in first.state.values()), default=0.0)
        return change() > 2.0 * self._allowed(first.kind) or of_state() > 2.0 * allowed

    def _allowed(self, kind: Kind) -> float:
        """The norm by which an output that tells something may be off."""
        limits = self.known.allowed[name_of(kind)]
        return max((limits[index].norm for index in self._telling(kind)), default=0.0)

    def _live(self, first: Round) -> dict[int, bool]:
        """Function -> whether its launches are live. Raises Strayed, Indispensable."""
        functions = in_order(launch.function for launch in self.subject.program.launches)
        # Where one launch alone writes the output, an output that matches proves it live.
        known = dict.fromkeys(functions, True) if self.subject.only is not None else dict(self.found)
        left = [function for function in functions if function not in known]
        if self.spins >= MOST_SPINS:
            return dict.fromkeys(left, False) | known
        allowed = self._allowed(first.kind)
        return known | live_functions(
            left, lambda f: self._change_without(f, first), lambda: self._noise(first, allowed), allowed
        )

    def _telling(self, kind: Kind) -> list[int]:
        """The outputs that tell whether a launch matters, by number: all but those that are noise in the reference, too, unless
        there is no other."""
        limits = self.known.allowed[name_of(kind)]
        return [index for index, limit in enumerate(limits) if math.isfinite(limit.element)] or list(range(len(limits)))

    def _difference(self, checks: Checks, first: Round, other: Outcome) -> Callable[[], float]:
        """Return what gives the largest difference between two calls in the outputs of `_telling`, see `Checks.difference`."""
        one, two = tensors_of(first.outcome.output), tensors_of(other.output)
        telling = self._telling(first.kind)
        return checks.difference([one[index] for index in telling], [two[index] for index in telling])

    def _change_without(self, function: int, first: Round) -> float:
        """By how much the output of a round changes without one function's launches, relative. Raises Failing."""
        checks, limit = Checks(self.fused), patience(first.seconds, self.seconds)
        try:
            try:
                outcome = self.call(self.subject, first.seeds, first.kind, frozenset({function}))
                settle(limit)  # here, because making memory may wait for a kernel that never ends
                checks.zones(*outcome.guards)
                change = self._difference(checks, first, outcome)
                checks.finish(self.seconds)
            except (RuntimeError, StepFailed) as error:
                if lost(limit) is not None:  # which an operator may be the first to tell
                    raise Failing(spun=False) from error
                if isinstance(error, RuntimeError):
                    raise
                return math.inf  # an operator cannot do without it
        except (Hung, Strayed) as error:
            raise Failing(spun=isinstance(error, Hung)) from error
        return change()

    def _noise(self, first: Round, allowed: float) -> float:
        """By how much the output of a round changes when the call is repeated, relative. Raises Strayed where that is much."""
        checks = Checks(self.fused)
        again = self.call(self.subject, first.seeds, first.kind)
        noise = self._difference(checks, first, again)
        self._finish(checks)
        if noise() > 2.0 * allowed:
            raise Strayed("the output depends on memory that is not written or not the candidate's own")
        return noise()

    def _judged(self, checks: Checks, one: Round) -> Match:
        """The round's match; a miss of size alone is looked at once more, with the reference's error on the same inputs."""
        match = self._finish(checks)
        if match.matches or not match.numeric:
            return match
        model = self._reference(one.seeds, one.kind)
        try:
            made = Call(model, self.problem.inputs(one.seeds.inputs, one.kind), one.seeds.forward, one.expected, one.kind.shown)
            if look_closer(one.outcome.output, made, one.state, self.precision, passes).matches:
                return Match(True, "", match.error)
            return replace(match, detail=match.detail + self._ignored(one))
        except torch.OutOfMemoryError:
            return replace(match, detail=match.detail + NO_ROOM)

    def _ignored(self, one: Round) -> str:
        """Which constant parameters explain the round's wrong output."""
        seeds = (one.seeds.init, one.seeds.inputs, one.seeds.forward)
        with judging(self.precision):
            return self.problem.ignored(
                one.kind, seeds, one.outcome.output, lambda model: self._prepared(model, one.seeds, one.kind)
            )

    def _finish(self, checks: Checks) -> Match:
        match = checks.finish(self.seconds)
        self.worst = max(self.worst, checks.worst)
        return match

    def trials(self) -> tuple[Speedup, float, Match]:
        """(speedup, host time to enqueue a forward, match of all timed outputs). Raises Strayed, Hung, Unmeasured."""
        trials = Trials(
            self.problem, self.known, self.stopwatch, self.fused, self.subject, self.precision, self.seconds, self.timing_width
        )  # fmt: skip
        try:
            return trials.run()
        finally:
            self.worst, self.close = max(self.worst, trials.worst), trials.close

    def rows(self, candidate_us: float) -> list[StepTime]:
        """Device time of each step. Raises Unmeasured if the steps do not add up to the forward."""
        if self.subject.only is not None:
            launch = self.subject.program.forward[self.subject.only]
            assert isinstance(launch, Launch)
            return [StepTime(self.subject.only, candidate_us, function=launch.function)]
        inputs = tensors_of(self.problem.inputs(draw_seed()))
        subject = self.subject
        subject.replay.place = subject.replay.before_step = None
        with torch.no_grad():
            for attempt in range(ATTRIBUTIONS):
                found = step_times(
                    subject.replay, inputs, self.stopwatch, subject.places[0], lambda: subject.places.refill(0), 3.0**attempt
                )
                if sum(row.us for row in found) <= 1.5 * candidate_us + STEP_SLACK_US * len(found):
                    return found
        raise Unmeasured("its steps take longer when each is timed than forward as a whole")
