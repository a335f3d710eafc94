"""One candidate's stay on the GPU.

    prepare (tune) -> rounds (judge, liveness) -> trials (time, check every output) -> rows (attribution)

Candidate first, answer later: while a candidate's kernels run, no expected output exists. Inputs and weights are drawn anew from
their seeds afterwards, compared with what the candidate was given, and only then does the reference compute the answer.
"""

from __future__ import annotations

import copy
import secrets
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

import torch

from rlkernel.evaluator.judge import Match, Sizes
from rlkernel.evaluator.program import Launch
from rlkernel.evaluator.runner.checks import Checks, Strayed
from rlkernel.evaluator.runner.fused import Fused
from rlkernel.evaluator.runner.gpu_problem import GpuProblem, Kind, Known, draw_seed, name_of, step_times, tensors_of
from rlkernel.evaluator.runner.guards import CUDA
from rlkernel.evaluator.runner.stopwatch import Run, Stopwatch, settle, spin_for
from rlkernel.evaluator.runner.subject import Outcome, Subject, places
from rlkernel.evaluator.timing import MIN_TRIALS, Speedup, enough, speedup

BATCH = 4
"""Trials enqueued before the host waits, after the first MIN_TRIALS."""
STRAYED = "a kernel writes to memory that is not the candidate's own"
FIRST_SPIN_US = 100.0
"""Before the first trial of a batch; the later ones find the queue full, unless they are too short."""
MAX_VOID = 60
"""Trials that may be void because the host was too slow, before they count anyway."""
INPUTS_CHECKED = 16
"""In one of so many trials, chosen at random, the inputs are compared with what their seed gives."""
NOISE_FACTOR = 4.0
"""A skipped launch changes the output if it does so by this much more than repeating the call does."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """Of one round: weights, inputs, and what `forward` draws."""

    init: int
    inputs: int
    forward: int


@dataclass(frozen=True, slots=True)
class Round:
    kind: Kind
    seeds: Seeds
    outcome: Outcome
    expected: Any
    """What the reference returned."""


@dataclass
class Session:
    """One candidate's stay on the GPU."""

    problem: GpuProblem
    known: Known
    stopwatch: Stopwatch
    fused: Fused
    subject: Subject
    other: Subject | None
    """In the other of train and eval mode, where the candidate does other work there."""
    modal: bool
    tf32: bool
    seconds: float
    """How long the rounds may take, or one trial."""
    worst: float = 0.0
    _shapes: list[torch.Tensor] = field(default_factory=list)
    """Meta tensors like the last trial's inputs and outputs."""
    careful: bool = False
    """One pass over the timed outputs did not tell whether they are right: each trial is looked at on its own from now on."""

    def prepare(self) -> None:
        """Memory is laid out, configurations are chosen. Raises Hung, NoConfig."""
        for subject, mode in ((self.subject, False), (self.other, True)):
            if subject is not None:
                seed = draw_seed()
                inputs = tensors_of(self.problem.inputs(seed))
                subject.lay_out(self.problem.init_tensors(), inputs)
                if subject.tunable:
                    subject.construct(self.problem.init_tensors(), seed, self.problem.model(seed, other=mode))
                    subject.tune(inputs, seed)

    def round(self, checks: Checks, subject: Subject, kind: Kind) -> Round:
        """Enqueue one round of fresh weights and inputs, and its judgement."""
        seeds = Seeds(draw_seed(), draw_seed(), draw_seed())
        outcome = self.call(subject, seeds, kind)
        settle(self.seconds)  # here, because making memory may wait for a kernel that never ends
        checks.zones(*outcome.guards)
        # The answer did not exist until here.
        given = self.problem.inputs(seeds.inputs, stress=kind.stress)
        expected = self.problem.call(self.problem.model(seeds.init, other=kind.other), given, seeds.forward)
        note = " (inputs scaled by 8)" if kind.stress else " in the other of train and eval mode" if kind.other else ""
        checks.outputs(outcome.output, expected, self.known.allowed[name_of(kind)], note)
        checks.unchanged(outcome.inputs, tensors_of(given), "forward changes its input {index}, the reference does not")
        return Round(kind, seeds, outcome, expected)

    def call(self, subject: Subject, seeds: Seeds, kind: Kind, skip: frozenset[int] = frozenset()) -> Outcome:
        subject.construct(self.problem.init_tensors(), seeds.init, self.problem.model(seeds.init, other=kind.other))
        return subject.forward(tensors_of(self.problem.inputs(seeds.inputs, stress=kind.stress)), seeds.forward, skip=skip)

    def rounds(self) -> tuple[Match, dict[int, bool], bool]:
        """(match, which functions' launches change the output, whether the miss is in the other mode alone). Raises Strayed.

        Inputs are scaled where the reference allows it: every timed output is checked at the usual scale anyway.
        """
        kind = Kind(stress="stress" in self.known.allowed)
        match, live = self._first_round(kind)
        if not match.matches:
            if kind.stress:  # what is wrong at the usual scale too is told without mention of another
                plain = self._judged(checks := Checks(self.fused), [self.round(checks, self.subject, Kind())])
                match = match if plain.matches else plain
            return match, {}, False
        if self.modal or self.other is not None:
            checks = Checks(self.fused)
            match = self._judged(checks, [self.round(checks, self.other or self.subject, Kind(other=True))])
        return match, live, not match.matches

    def _first_round(self, kind: Kind) -> tuple[Match, dict[int, bool]]:
        checks, subject = Checks(self.fused), self.subject
        first = self.round(checks, subject, kind)
        honest = tensors_of(first.outcome.output)
        # Where one launch alone writes the output, an output that matches proves it live.
        functions = sorted({launch.function for launch in subject.program.launches}) if subject.only is None else []
        skipped = [self.call(subject, first.seeds, kind, frozenset({function})) for function in functions]
        changes = [checks.difference(honest, tensors_of(outcome.output)) for outcome in skipped]
        match = self._judged(checks, [first])
        if not match.matches:
            return match, {}
        live = self._live(first, {f: change() for f, change in zip(functions, changes, strict=True)})
        return match, live | {launch.function: True for launch in subject.program.launches if subject.only is not None}

    def _live(self, first: Round, changes: dict[int, float]) -> dict[int, bool]:
        """Function -> whether skipping it changes the output more than repeating the call does. Raises Strayed."""
        allowed = max(self.known.allowed[name_of(first.kind)], default=0.0)
        if all(change == 0.0 or change > 100.0 * allowed for change in changes.values()):
            return {function: change > 0.0 for function, change in changes.items()}
        checks = Checks(self.fused)
        again = self.call(self.subject, first.seeds, first.kind)
        noise = checks.difference(tensors_of(first.outcome.output), tensors_of(again.output))
        self._finish(checks)
        if noise() > 2.0 * allowed:
            raise Strayed("the output depends on memory that is not written or not the candidate's own")
        return {function: change > NOISE_FACTOR * noise() for function, change in changes.items()}

    def _judged(self, checks: Checks, done: list[Round]) -> Match:
        """The rounds' match; a miss of size alone is looked at once more, with the reference's error on the same inputs."""
        match = self._finish(checks)
        if match.matches or not match.numeric:
            return match
        for one in done:
            model = self.problem.model(one.seeds.init, other=one.kind.other)
            inputs = self.problem.inputs(one.seeds.inputs, stress=one.kind.stress)
            found = self.problem.look_closer(
                one.outcome.output, one.expected, model, inputs, one.seeds.forward, tf32=self.tf32
            )  # fmt: skip
            if not found.matches:
                return match
        return Match(True, "", match.error)

    def _finish(self, checks: Checks) -> Match:
        match = checks.finish(self.seconds)
        self.worst = max(self.worst, checks.worst)
        return match

    def trials(self) -> tuple[Speedup, float, Match]:
        """(speedup, host time to enqueue a forward, match of all timed outputs). Interleaved, each trial on fresh inputs."""
        init_seed = draw_seed()
        model = self.problem.model(init_seed)
        self.subject.construct(self.problem.init_tensors(), init_seed, model)
        spin = FIRST_SPIN_US
        candidate_us: list[float] = []
        reference_us: list[float] = []
        host_us: list[float] = []
        match, void = Match(True), 0
        begun = time.perf_counter()
        while match.matches and not enough(reference_us, candidate_us, time.perf_counter() - begun):
            count = 1 if self.careful or not self.known.finite else MIN_TRIALS if not candidate_us else BATCH
            batch = [self._trial(model, spin if not place or void else 0.0) for place in range(count)]
            match, certain = self._told(batch)
            for trial in batch if certain else []:
                if (trial.candidate.void or trial.reference.void) and void < MAX_VOID:
                    void += 1
                    spin = max(spin, spin_for(max(trial.candidate.host_us, trial.reference.host_us)))
                    continue
                candidate_us.append(trial.candidate.us)
                reference_us.append(trial.reference.us)
                host_us.append(trial.candidate.host_us)
        if match.matches:
            checks = Checks(self.fused)
            checks.zones(*self.subject.memory)
            # The reference's weights outlived the candidate's kernels: they still are what their seed gives.
            again = dict(self.problem.model(init_seed).named_parameters())
            kept = [(p, again[n]) for n, p in model.named_parameters() if n in again]
            checks.unchanged([p for p, _ in kept], [p for _, p in kept], STRAYED)
            match = self._finish(checks)
            if not match.matches:
                raise Strayed(match.detail)
        timed = speedup(reference_us or [1.0], candidate_us or [1.0])
        return timed, statistics.median(host_us or [0.0]), match

    def _trial(self, model: torch.nn.Module, spin: float) -> Trial:
        """Enqueue one timed run of each side, and the check of what they gave. Waits only when it must be careful."""
        seed, forward_seed = draw_seed(), draw_seed()
        # Where tensors lie moves short times by several percent, so they lie elsewhere every time: what lies in their way is
        # as large as they are, and given back after the trial.
        in_the_way = [torch.empty_like(t, device=CUDA) for t in self._shapes for _ in range(secrets.randbelow(places(t.nbytes)))]
        place = secrets.randbelow(len(self.subject.places))
        inputs = self.problem.inputs(seed)
        flat = tensors_of(inputs)
        given = inputs
        if self.known.changes_inputs:
            given = rebuilt(inputs, [t.clone(memory_format=torch.preserve_format) for t in flat])
        self.subject.refill(place)
        output, candidate = self.stopwatch.run(lambda: self.subject.timed(flat, forward_seed, place), spin)
        expected, reference = self.stopwatch.run(lambda: self.problem.call(model, given, forward_seed), spin)
        del in_the_way
        self._shapes = [torch.empty_like(t, device="meta") for t in (*flat, *tensors_of(expected))]
        checks = Checks(self.fused)
        if not self.known.changes_inputs and secrets.randbelow(INPUTS_CHECKED) == 0:
            again = tensors_of(self.problem.inputs(seed))
            checks.unchanged(flat, again, "forward changes its input {index} when it is timed, the reference does not")
        if self.careful or not self.known.finite:
            checks.outputs(output, expected, self.known.allowed["plain"])
            match = self._finish(checks)
            if not match.matches and match.numeric:
                exact = copy.deepcopy(model)
                pristine = self.problem.inputs(seed)
                match = self.problem.look_closer(output, expected, exact, pristine, forward_seed, tf32=self.tf32)
            return Trial(candidate, reference, checks, match, [])
        pairs = zip(tensors_of(output), tensors_of(expected), strict=True)
        # The next trial writes to the same memory, so only the numbers stay.
        sums = [(self.fused.sums(f, e), torch.empty_like(e, device="meta")) for f, e in pairs]
        return Trial(candidate, reference, checks, None, sums)

    def _told(self, batch: list[Trial]) -> tuple[Match, bool]:
        """Of a batch's checks, the first miss; and whether they told for certain. If not, the batch does not count, and from
        now on each trial is looked at on its own."""
        settle(len(batch) * self.seconds)
        numbers = [sums for trial in batch for sums, _ in trial.sums]
        rows = iter(torch.stack(numbers).tolist() if numbers else [])
        certain = True
        for trial in batch:
            match = trial.match or self._finish(trial.checks)
            if not match.matches:
                return match, True
            for (_, like), limit in zip(trial.sums, self.known.allowed["plain"], strict=False):
                sizes = Sizes.of(next(rows), like)
                self.worst = max(self.worst, sizes.error if sizes.finite else 0.0)
                certain &= sizes.fine(limit)
        self.careful |= not certain
        return Match(True), certain

    def rows(self, candidate_us: float) -> list[dict[str, Any]]:
        """Device time of each step."""
        if self.subject.only is not None:
            launch = self.subject.program.forward[self.subject.only]
            assert isinstance(launch, Launch)
            return [{"step": self.subject.only, "function": launch.function, "us": candidate_us}]
        inputs = tensors_of(self.problem.inputs(draw_seed()))
        self.subject.replay.place = None
        with torch.no_grad():
            subject = self.subject
            return step_times(subject.replay, inputs, self.stopwatch, subject.places[0], lambda: subject.refill(0))


@dataclass(frozen=True, slots=True)
class Trial:
    """One timed run of each side, and what tells whether their outputs agree: `match` at once, the rest after the batch."""

    candidate: Run
    reference: Run
    checks: Checks
    match: Match | None
    sums: list[tuple[torch.Tensor, torch.Tensor]]
    """`quick_sums` of each output, and a meta tensor like it."""


def rebuilt(structure: Any, tensors: list[torch.Tensor]) -> Any:
    """`structure` with its tensors replaced, in order."""
    rest = iter(tensors)

    def build(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return next(rest)
        return [build(item) for item in value] if isinstance(value, (list, tuple)) else value

    return build(structure)
