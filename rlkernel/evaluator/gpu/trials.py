"""Times candidate and reference in alternation. Each trial has fresh inputs of its own, and every output is checked."""

from __future__ import annotations

import copy
import secrets
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from rlkernel.evaluator.gpu import host_reads
from rlkernel.evaluator.gpu.checks import Checks, Strayed
from rlkernel.evaluator.gpu.closer import Call, look_closer
from rlkernel.evaluator.gpu.fused import Fused, kept
from rlkernel.evaluator.gpu.fused_errors import passes
from rlkernel.evaluator.gpu.graphs import LONG_STEPS, record, replay
from rlkernel.evaluator.gpu.guards import CUDA
from rlkernel.evaluator.gpu.places import detours
from rlkernel.evaluator.gpu.problem import GpuProblem
from rlkernel.evaluator.gpu.stopwatch import Run, Stopwatch, settle, spin_for
from rlkernel.evaluator.gpu.subject import Subject
from rlkernel.evaluator.judging.errors.comparison import Match, Sizes, mismatch
from rlkernel.evaluator.judging.errors.kernelbench import closeness, surely_tight
from rlkernel.evaluator.judging.references.flags import judging
from rlkernel.evaluator.judging.references.reference_calls import call, counts_as_state, draw_seed, state_of, tensors_of
from rlkernel.evaluator.judging.timing import missing, speedup
from rlkernel.evaluator.messages.gpu import Known, Speedup
from rlkernel.evaluator.program.tensors import extent, overlapping
from rlkernel.types import TIMING_WIDTH, Closeness, Precision

STRAYED = "a kernel writes to memory that is not the candidate's own"
FIRST_HOST_US = 200.0
"""The longest time of the host that the first spin covers, so that one that was held up once does not lengthen each trial."""
FIRST_SPIN_US = 100.0
"""The least spin before a run that finds the queue empty; a host that takes longer asks for a longer one."""
TOLERATED_VOIDS = 2
"""The number of void trials after which every run spins, also behind a run that still goes on."""
VOID_SECONDS = 0.2
"""How long the trials try for runs without gaps."""
PATIENT_VOIDS = 4
"""Void trials up to which they try in any case: to draw inputs may take seconds, and each void one lengthens the spin."""
GIVE_UP_SECONDS = 1.0
"""The time after which the trials end if more than `GIVE_UP_VOIDS` of them were void."""
GIVE_UP_VOIDS = 8
"""Void trials up to which none of a stay's seconds ends the trials."""
MAX_HOST_US = 10_000.0
"""The time to enqueue a call above which no spin helps, because the host waits for the GPU."""
INPUTS_CHECKED = 8
"""The inputs of one trial in so many, chosen at random, are compared with what their seed gives."""


class Unmeasured(Exception):
    """The outputs match, but no time can be trusted."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One timed run of each side, and what tells whether their outputs agree.

    `match` tells at once if it is there; `checks` and `sums` tell after the batch.
    """

    candidate: Run
    reference: Run
    checks: Checks
    match: Match | None
    sums: list[tuple[torch.Tensor, torch.Tensor]]
    """What `quick_sums` gave for each output, and a meta tensor like that output."""
    certain: bool = True
    """Whether a miss in `match` is one for certain."""


@dataclass
class Made:
    """The trials that count so far, and those that do not."""

    candidate_us: list[float] = field(default_factory=list)
    reference_us: list[float] = field(default_factory=list)
    host_us: list[float] = field(default_factory=list)
    void: int = 0
    slow_hosts_us: list[float] = field(default_factory=list)
    """The host times of the last void trial's runs, for which the queue must be held."""

    def add(self, trial: Trial, *, gaps: bool, patient: bool) -> None:
        """Take one trial into account.

        A void run of the candidate counts once nobody is `patient` any more: the gaps are its own loss. A void run of the
        reference counts only if the reference always has `gaps`: otherwise the candidate may be to blame.
        """
        if (trial.reference.void and not gaps) or (trial.candidate.void and patient):
            self.void += 1
            self.slow_hosts_us = [min(trial.candidate.host_us, MAX_HOST_US), min(trial.reference.host_us, MAX_HOST_US)]
            return
        self.candidate_us.append(trial.candidate.us)
        self.reference_us.append(trial.reference.us)
        self.host_us.append(trial.candidate.host_us)

    def patient(self, seconds: float) -> bool:
        """Whether a run of the candidate with gaps is tried again, so many seconds after the trials began."""
        return seconds < VOID_SECONDS or self.void < PATIENT_VOIDS

    def hopeless(self, seconds: float) -> bool:
        """Whether trials without gaps are given up, so many seconds after they began. Both must be reached: seconds pass while we
        draw inputs, and the first void trials only tell how long this host takes."""
        return self.void > GIVE_UP_VOIDS and seconds > GIVE_UP_SECONDS


@dataclass
class Trials:
    """The timed part of a candidate's stay."""

    problem: GpuProblem
    known: Known
    stopwatch: Stopwatch
    fused: Fused
    subject: Subject
    precision: Precision
    seconds: float
    """How long one trial may take, in seconds."""
    timing_width: float = TIMING_WIDTH
    """Half of the speedup's 95 % interval, relative, at which trials stop."""
    worst: float = 0.0
    """The largest error of a timed output so far."""
    graphs: bool = False
    """Whether both sides run as CUDA graphs, because one of them is long."""
    close: Closeness | None = None
    """How KernelBench would compare the first timed output."""
    careful: bool = False
    """Whether each trial is looked at on its own, because one pass over the timed outputs did not tell if they are right."""
    _recorded: list[torch.cuda.CUDAGraph] = field(default_factory=list)
    """The graphs of the trial on its way, whose memory holds its outputs."""
    _shapes: list[torch.Tensor] = field(default_factory=list)
    """A meta tensor like each of the first trial's inputs and outputs."""
    _sizes: list[tuple[int, int]] = field(default_factory=list)
    """The bytes that each of them spans, and how many blocks of these may lie in the way, see `detours`."""

    def run(self) -> tuple[Speedup, float, Match]:
        """Return the speedup, the host's time to enqueue a forward in microseconds, and the match of all timed outputs.

        The first trial is alone: it is looked at more closely, and it tells how long the next ones take.

        Raises Strayed, Hung, Unmeasured.
        """
        init_seed, calls = draw_seed(), self.subject.calls_before
        model = self.problem.model(init_seed)
        first = tensors_of(self.problem.first_inputs(calls, init_seed))
        self.subject.construct(self.problem.init_tensors(init_seed), init_seed, model, first)
        if calls:
            settle(self.seconds)  # the candidate first, as in every call
            self.problem.called(model, calls, 0, init_seed, flip=False)
        self.graphs = self._long() and self._recordable(model, init_seed)
        made = Made()
        match, spin, begun = Match(True), self._first_spin(), time.perf_counter()
        while match.matches and (count := self._missing(made, time.perf_counter() - begun)):
            one = self.careful or not self.known.plain or self.graphs or self.close is None
            busy = made.void <= TOLERATED_VOIDS
            batch = [self._trial(model, spin, unless_busy=busy) for _ in range(1 if one else count)]
            match, certain = self._told(batch)
            seconds = time.perf_counter() - begun
            patient = made.patient(seconds)  # alike for all of a batch, which had one spin
            for trial in batch if certain else []:
                made.add(trial, gaps=self.known.gaps, patient=patient)
            spin = max([spin, *(spin_for(us) for us in made.slow_hosts_us)])
            if made.hopeless(seconds):
                if len(made.candidate_us) < 2:  # of one trial nothing is known but the clock's resolution
                    raise Unmeasured("its time cannot be measured: the reference beside it is held up")
                break
        if match.matches:
            self._still_intact(model, init_seed)
        timed = speedup(made.reference_us or [1.0], made.candidate_us or [1.0])
        return timed, statistics.median(made.host_us or [0.0]), match

    def _missing(self, made: Made, seconds: float) -> int:
        """How many more trials to make at once, so many seconds after the first began."""
        return missing(made.reference_us, made.candidate_us, seconds, self.timing_width)

    def _first_spin(self) -> float:
        """The spin before any trial was made, by the host's time for a reference that it enqueues without waiting."""
        known_us = 0.0 if self.known.gaps or self.graphs else self.known.host_us
        return max(FIRST_SPIN_US, spin_for(min(known_us, FIRST_HOST_US)))

    def _long(self) -> bool:
        """Whether one side has so many steps that the host's pace would show in its time."""
        return max(len(self.known.rows), self.subject.steps) > LONG_STEPS

    def _recordable(self, model: torch.nn.Module, seed: int) -> bool:
        """Whether both sides can be recorded as graphs. Nothing runs."""
        inputs = self.problem.inputs(seed)
        reference = self._reference(model, inputs, seed, seed)
        sides = (lambda: self.subject.timed(tensors_of(inputs), seed, 0), reference)
        with self.subject.taking_back():
            recorded = [record(side, seed) for side in sides]
        settle(self.seconds)  # the graphs are on their way to the card: they must not be dropped before they are there
        return None not in recorded

    def _reference(self, model: torch.nn.Module, inputs: list[Any], seed: int, forward_seed: int) -> Callable[[], Any]:
        """What is timed of the reference: a call on `inputs`, which were drawn from `seed`. One whose host reads values of the
        GPU is called before on the same inputs, and given what it has read. Raises Hung."""
        if not self.known.reads:
            return lambda: call(model, inputs, forward_seed)
        settle(self.seconds)  # the candidate, for which a host that reads would wait for ever
        changes = self.known.changes_state or self.problem.replaced
        before = copy.deepcopy(model) if changes else model
        known = host_reads.noted(before, self.problem.inputs(seed), forward_seed)
        return lambda: host_reads.answered(model, inputs, forward_seed, known)

    def _timed(self, forward: Callable[[], Any], seed: int, spin: float, unless_busy: bool) -> tuple[Any, Run]:
        """Enqueue one timed call of either side, eagerly or as a graph. Raises Unmeasured."""
        if not self.graphs:
            return self.stopwatch.run(forward, spin, unless_busy=unless_busy)
        recorded = record(forward, seed)
        if recorded is None:
            raise Unmeasured("its time cannot be measured: forward cannot be recorded a second time")
        output, graph = recorded
        self._recorded.append(graph)
        return output, self.stopwatch.run(replay(graph, seed), spin, unless_busy=unless_busy)[1]

    def _still_intact(self, model: torch.nn.Module, init_seed: int) -> None:
        """Check that the red zones hold, and that the reference's state, which outlived the candidate's kernels, is what its
        seed gives. Raises Strayed."""
        checks = Checks(self.fused)
        checks.zones(*self.subject.memory)
        now = state_of(model)
        again = state_of(self.problem.model(init_seed)) if now else {}
        names = [n for n, t in again.items() if n not in self.known.changes_state and counts_as_state(n, t)]
        checks.unchanged([now[n] for n in names], [again[n] for n in names], STRAYED)
        match = self._finish(checks)
        if not match.matches:
            raise Strayed(match.detail)

    def _trial(self, model: torch.nn.Module, spin: float, *, unless_busy: bool) -> Trial:
        """Enqueue one timed run of each side, and the check of what they gave. This waits only when it must be careful."""
        seed, forward_seed = draw_seed(), draw_seed()
        # Where tensors lie moves short times by several percent, so they lie elsewhere every time: what lies in their way is
        # as large as they are, and given back after the trial.
        in_the_way = [
            torch.UntypedStorage(size, device=CUDA)  # a tensor takes twice as long
            for size, most in self._sizes
            for _ in range(secrets.randbelow(most))
        ]
        place = secrets.randbelow(len(self.subject.places))
        self.problem.ready(seed)  # a card that is idle for seconds lowers its clocks: before both sides, it is for as long
        mine = tensors_of(self.problem.inputs(seed))
        self.subject.places.refill(place)
        output, candidate = self._timed(lambda: self.subject.timed(mine, forward_seed, place), forward_seed, spin, unless_busy)
        given = self.problem.inputs(seed)  # drawn anew: whatever the candidate did to its own
        answer = self._reference(model, given, seed, forward_seed)
        alone = self.careful or not self.known.plain
        exact = copy.deepcopy(model) if alone else None
        expected, reference = self._timed(answer, forward_seed, spin, unless_busy)
        del in_the_way
        found, wanted = tensors_of(output), tensors_of(expected)
        if not self._shapes:
            self._shapes = [torch.empty_like(t, device="meta") for t in (*mine, *wanted)]
            self._sizes = [(extent(t.shape, t.stride()) * t.itemsize, detours(t.nbytes)) for t in self._shapes]
        checks = Checks(self.fused)
        if self.known.keeps_inputs and secrets.randbelow(INPUTS_CHECKED) == 0:
            checks.unchanged(
                mine, tensors_of(given), "forward changes its input {index} when it is timed, the reference does not"
            )
        if alone or self.close is None:  # the first one, too: its rows and columns are looked at, and by KernelBench's rule
            checks.outputs(output, expected, self.known.allowed["timed"])
            match = self._finish(checks)
            told = match.matches and surely_tight(checks.largest, wanted)
            self.close = self.close or (Closeness.TIGHT if told else closeness(found, wanted))
            if not match.matches and match.numeric and exact is not None:
                match = self._look_closer(output, exact, seed, forward_seed)
            return Trial(candidate, reference, checks, match, [], certain=alone or not match.numeric)
        for f, w in zip(found, wanted, strict=True):
            wrong = mismatch(f, w, overlapping=overlapping(f), where="an output of a timed run")
            if wrong is not None:
                return Trial(candidate, reference, checks, Match(False, wrong), [])
        # The next trial writes to the same memory, so only the numbers stay, where no kernel reaches them.
        sums = [kept(self.fused.sums(f, w)) for f, w in zip(found, wanted, strict=True)]
        return Trial(candidate, reference, checks, None, list(zip(sums, self._shapes[len(mine) :], strict=True)))

    def _look_closer(self, output: Any, model: torch.nn.Module, seed: int, forward_seed: int) -> Match:
        """Judge one timed output by the reference's own error. `model`: the reference's as it was before the timed call, whose
        answer may hold cuDNN's tf32."""
        with judging(self.precision):
            expected = call(copy.deepcopy(model), self.problem.inputs(seed), forward_seed)
        made = Call(model, self.problem.inputs(seed), forward_seed, expected)
        return look_closer(output, made, {}, self.precision, passes)

    def _told(self, batch: list[Trial]) -> tuple[Match, bool]:
        """Return the first miss of a batch's checks, or a match, and whether they told for certain.

        If they did not, the batch does not count, and from now on each trial is looked at on its own.
        """
        settle(len(batch) * self.seconds)
        certain = True
        for trial in batch:
            match = trial.match or self._finish(trial.checks)
            certain &= trial.certain or match.matches
            if not match.matches and trial.certain:
                return match, True
            limits = self.known.allowed["timed"] if trial.sums else ()
            for (sums, like), limit in zip(trial.sums, limits, strict=True):
                sizes = Sizes.of(sums.tolist(), like)
                self.worst = max(self.worst, sizes.error if sizes.finite else 0.0)
                certain &= sizes.fine(limit) or not like.numel()
        self.careful |= not certain
        self._recorded.clear()
        return Match(True), certain

    def _finish(self, checks: Checks) -> Match:
        """Finish `checks`, and remember their largest error. Raises Hung, Strayed."""
        match = checks.finish(self.seconds)
        self.worst = max(self.worst, checks.worst)
        return match
