"""One judgement without a GPU: traced at two sizes, interpreted at the small one, its time modelled at the full one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread

from rlkernel.errors import BrokenReference
from rlkernel.evaluator import wire
from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.compile.binaries import Compiled, Kernels
from rlkernel.evaluator.cpu.extents import growth, is_side
from rlkernel.evaluator.devices import Room
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.errors.kernelbench import worse
from rlkernel.evaluator.judging.noted import noted
from rlkernel.evaluator.judging.sizes.host_limits import HostLimits
from rlkernel.evaluator.judging.sizes.own_sizes import OwnSizes
from rlkernel.evaluator.judging.verdict import Facts, Times, census, combine
from rlkernel.evaluator.messages.children import Extent, Priced, Ran, RunRequest, TooLarge
from rlkernel.evaluator.messages.judgement import KnownInput, Told
from rlkernel.evaluator.messages.oracle import Compare, Compared, DrawMore, DrawRounds, Malformed, Rounds
from rlkernel.evaluator.processes.child import Child
from rlkernel.evaluator.program.compiled_ahead import KernelFacts
from rlkernel.evaluator.program.first_call import Touched
from rlkernel.evaluator.program.schema import Launch, Program
from rlkernel.evaluator.program.variant import Kept, Specs, Traced, Variant
from rlkernel.evaluator.stages import Stages, nonsense
from rlkernel.types import Evaluation, Precision, Problem, Status


class TooLong(Exception):
    """The interpreter would take too long at these sizes."""


class AtFull:
    """What is known of one candidate at its problem's full shape. An evaluation finds it out once, whatever the sizes at which
    it compares results."""

    def __init__(self) -> None:
        self._variant: Variant | None = None
        self._found: tuple[Traced, Kept] | None = None
        self.facts: tuple[KernelFacts, ...] = ()
        """What is known of the kernels that host code compiles ahead."""
        self.kernels: Kernels | None = None
        """The binaries, once it is certain that there will be no others."""
        self.priced: Priced | None = None

    def traced(self, variant: Variant) -> tuple[Traced, Kept] | None:
        """The candidate at full shape, and which configurations it keeps there; None where that was not traced yet, or at other
        arguments."""
        return self._found if self._variant == variant else None

    def learn(self, variant: Variant, traced: Traced, kept: Kept) -> None:
        """The candidate was traced at full shape."""
        self._variant, self._found = variant, (traced, kept)
        self.kernels = self.priced = None

    def unpriced(self) -> AtFull:
        """The same without what depends on which programs of a grid were followed, for a look whose figures count."""
        same = AtFull()
        same._variant, same._found, same.facts = self._variant, self._found, self.facts
        if self._found is not None and not has_choice(self._found[0].program):
            same.kernels = self.kernels
        return same


@dataclass(frozen=True, slots=True)
class Judged:
    """An evaluation, and what the sizes at which results were compared have shown of it."""

    evaluation: Evaluation
    same_work: bool
    """Whether forward launches and calls the same at these sizes as at full shape."""
    short: frozenset[Extent]
    """The loops that have too few turns at these sizes to show how they go on, and more at full shape; axes of grids likewise."""
    unfilled: bool = False
    """Whether the blocks of a kernel are not filled at these sizes that are filled at full shape, or there are none of them."""
    work: int = 0
    """What the interpreter had to do, see `cpu.pace`."""
    limited: bool = False
    """Whether a fixed number that decides at full shape alone changes what is right at these sizes."""
    switched: bool = False
    """Whether a kernel is given a truth value at full shape that it is not given at these sizes, such as `EVEN=True`, or whole
    launches take a side of a branch there that none takes here."""
    by_chance: bool = False
    """Whether too little of an output may be written at full shape, see `Priced.by_chance`."""
    growth: float = 1.0
    """How many times as much there is to do at full shape."""

    @property
    def is_wrong(self) -> bool:
        """Whether results do not match at these sizes, or would not with another number in place of a fixed one."""
        return self.evaluation.matches is False or self.limited


class CpuJudge:
    """Judges one candidate at a time per oracle, at given sizes."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages

    async def judge(
        self, oracle: Child, problem: Problem, code: str, clock: Clock, most_work: float | None, at_full: AtFull,
        own: OwnSizes | HostLimits | None = None, *, doubted: bool = False,
    ) -> Judged:  # fmt: skip
        """Judge one candidate at the problem's own sizes. `at_full` is what is known of it already, and learns what is found.
        own: the numbers of its text that are smaller where the problem is. doubted: whether it is likely wrong; it is shown few
        rounds first then, which takes longer where it is right. Raises Ended, BrokenReference, EvaluatorFailed, and TooLong where
        its rounds take more than `most_work`, see `cpu.pace`.
        """
        stages = self.stages
        brief = await stages.brief(oracle, problem)
        first, whole = brief.variants
        if own is not None:
            first = replace(first, constants={**first.constants, **own.at(dict(brief.counterparts))})
        small, full = await self._trace(code, (first, whole), clock, at_full)
        specs = whole.specs
        if brief.unpriced:
            unknown = ", ".join(sorted(set(brief.unpriced)))
            raise BrokenReference(f"{problem.name}: without a GPU no time is known for {unknown}")
        key = await stages.key(problem, code, (small, full))
        kernels = at_full.kernels or await self._compile(full.program, specs, key, clock, brief.known)
        if not has_choice(full.program):  # else the prices decide, and what these are drawn from
            at_full.kernels = kernels
        with clock.stage("run"):
            try:
                request = RunRequest(
                    small.program, small.other, full.program, specs, stages.config.profile, stages.config.precision, (), key,
                    {step: next(iter(choices)) for step, choices in kernels.facts.items()}, most_work, at_full.priced,
                    brief.written, brief.reads, rooms={step: _room(choices) for step, choices in kernels.facts.items()},
                    touched={step: _touched(choices) for step, choices in kernels.facts.items()},
                    hides=brief.distances, known=brief.known,
                )  # fmt: skip
                ran, compared = await self._run(oracle, problem, small, request, doubted)
            except Ended as end:
                end.ran = True
                raise
        priced = ran.priced or at_full.priced
        assert priced is not None
        at_full.kernels, at_full.priced = kernels, priced
        now = clock.now

        def judged() -> Judged:
            modelled_us = max(sum(row.us for row in priced.rows), 1e-3)
            told = brief.told if priced.told and brief.told is not None else Told(brief.floor_us, brief.least_share)
            facts = Facts(
                program=full.program, same_work=census(small.program) == census(full.program), kernels=_by_step(kernels),
                rows=priced.rows, live=_by_source(small.program, full.program, ran.live), unwritten=priced.unwritten,
                unread=priced.unread, limited=ran.limited, tunes=ran.tunes, effort=ran.effort, told=priced.told,
                matches=compared.matches, other_mode_only=compared.other and small.other is not None, detail=compared.detail,
                error=compared.error, close=compared.close, times=Times.modelled(brief.reference_us, modelled_us),
                floor_us=told.floor_us, products=brief.products, least_share=told.least_share,
                reference_ops=brief.reference_ops, strict=stages.config.precision is Precision.STRICT,
            )  # fmt: skip
            unfilled = ran.unfilled or bool(_without_programs(small.program) - _without_programs(full.program))
            short = frozenset(extent for extent in ran.short if not is_side(extent.place))
            switched = len(short) < len(ran.short) or bool(_truths(full.program) - _truths(small.program))
            return Judged(
                combine(facts, now), facts.same_work, short, unfilled, ran.work, ran.limited, switched, priced.by_chance,
                growth(small.program, full.program, short),
            )  # fmt: skip

        return await anyio.to_thread.run_sync(judged)  # of up to 131,072 steps

    async def _trace(
        self, code: str, variants: tuple[Variant, Variant], clock: Clock, at_full: AtFull
    ) -> tuple[Traced, Traced]:  # fmt: skip
        """The candidate at the small and at the full size, which is traced once. Raises Ended."""
        small, full = variants
        known = at_full.traced(full)
        if known is None:
            found, at_full.facts = await self.stages.trace(code, variants, clock, at_full.facts)
            at_full.learn(full, found.traces[1], found.timed)
            return found.traces[0], found.traces[1]
        found, at_full.facts = await self.stages.trace(code, (small,), clock, at_full.facts, known[1])
        return found.traces[0], known[0]

    async def _compile(self, full: Program, specs: Specs, key: str, clock: Clock, known: tuple[KnownInput, ...]) -> Kernels:
        """One binary for each launch; of an autotuned one, the fastest configuration that compiles. No other is run or priced.
        Raises Ended."""
        if not full.launches:
            return Kernels({}, {})
        orders: dict[int, tuple[int, ...]] = {}
        if has_choice(full):
            with clock.stage("run"):
                orders = await self.stages.orders(full, specs, key, known)
        with clock.stage("compile"):
            kernels = await self.stages.compile(full, specs, orders)
        if (note := noted()) is not None:
            every = {full.functions[step.function].name: len(step.configs) for step in full.launches}
            note.configurations |= {name: count for name, count in every.items() if count > 1}
        return kernels

    async def _run(
        self, oracle: Child, problem: Problem, small: Traced, request: RunRequest, doubted: bool
    ) -> tuple[Ran, Compared]:
        """The candidate on rounds that are drawn from its key, and what the oracle says of its outputs. `request` has no rounds
        yet. Rounds that come in several messages are run in a child each, until one does not match. Raises Ended and TooLong."""
        drawing = DrawRounds(self.stages.about(problem), request.key, small.other is not None, *small.calls_before, doubted)
        request, ran, compared, more = await self._part(oracle, drawing, request)
        while more and compared.matches:
            request = replace(request, priced=ran.priced or request.priced, before=request.before + len(request.rounds))
            request, ran_then, compared_then, more = await self._part(oracle, DrawMore(), request)
            if request.rounds:
                ran = replace(ran, short=tuple(one for one in ran.short if one in ran_then.short))
                compared = together(compared, compared_then)
        return ran, compared

    async def _part(
        self, oracle: Child, drawing: DrawRounds | DrawMore, request: RunRequest
    ) -> tuple[RunRequest, Ran, Compared, bool]:
        """The candidate on the rounds of one message: the request with them, what came of it, and whether there may be others.
        Raises Ended and TooLong."""
        stages = self.stages
        drawn, inputs = await stages.ask_oracle(oracle, drawing, Rounds)
        request, seconds = replace(request, rounds=drawn.rounds), stages.config.limits.run_seconds
        if not drawn.rounds:
            return request, Ran((), None, {}, ()), Compared(True, "", 0.0, False), False
        ran: Ran | TooLarge
        ran, outputs, _ = await stages.job("run", request, seconds, Ran, TooLarge, body=inputs)
        if isinstance(ran, TooLarge):
            raise TooLong
        try:
            check(ran, request)
        except wire.BadMessage as error:
            raise nonsense("run", error) from error
        compared: Compared | Malformed
        compared, _ = await stages.ask_oracle(oracle, Compare(ran.rounds), Compared, Malformed, body=outputs)
        if isinstance(compared, Malformed):
            raise Ended(Status.CRASH, f"the runner's answer is malformed: {compared.why}")
        if stages.places is not None and compared.place:
            stages.places[compared.detail] = compared.place
        return request, ran, compared, drawn.more


def together(one: Compared, other: Compared) -> Compared:
    """What was found of rounds that all match, and of further ones."""
    close = worse(one.close, other.close) if one.close is not None and other.close is not None else one.close or other.close
    return replace(other, error=max(one.error, other.error), close=close)


def _without_programs(program: Program) -> frozenset[str]:
    """The kernels that forward launches on empty grids alone."""
    launches = [step for step in program.forward if isinstance(step, Launch)]
    ran = {step.function for step in launches if any(all(config.grid) for config in step.configs)}
    return frozenset(program.functions[step.function].source for step in launches if step.function not in ran)


def _truths(program: Program) -> frozenset[tuple[str, str, int]]:
    """The truth values that kernels are given, by their texts and parameters."""
    given = ((step, {**config.constants, **step.args, **config.args}) for step in program.launches for config in step.configs)
    return frozenset(
        (program.functions[step.function].source, name, value)
        for step, values in given for name, value in values.items() if isinstance(value, int) and value in (0, 1)
    )  # fmt: skip


def has_choice(program: Program) -> bool:
    """Whether a launch in forward has several configurations."""
    return any(len(launch.configs) > 1 for launch in program.launches)


def check(ran: Ran, request: RunRequest) -> None:
    """Whether a child's answer speaks of steps and kernels that there are, and prices what has no price yet. Raises
    wire.BadMessage."""
    steps, kernels = len(request.full.forward), len(request.full.functions)
    if (ran.priced is None) == (request.priced is None):
        raise wire.BadMessage("no times, or such that nobody has asked for")
    priced = ran.priced or Priced((), False, {}, ())
    rows, idle, repeated = priced.rows, priced.idle, priced.repeated
    if any(row.step >= steps or (row.function is not None and row.function >= kernels) for row in rows):
        raise wire.BadMessage("the time of a step that there is not")
    known = [*idle, *(one.function for one in (*ran.short, *repeated)), *priced.left_out, *priced.efforts]
    known += [one.function for one in priced.held]
    if any(one >= kernels for one in known) or any(one >= len(request.program.functions) for one in ran.live):
        raise wire.BadMessage("a kernel that there is not")


def _room(choices: Mapping[int, Compiled]) -> Room:
    """What the one binary of a launch takes of a processor."""
    facts = next(iter(choices.values()))
    return Room(facts.registers, facts.shared_bytes)


def _touched(choices: Mapping[int, Compiled]) -> Touched:
    """What the one binary of a launch stores to and loads from."""
    facts = next(iter(choices.values()))
    return Touched(facts.stores, facts.loads)


def _by_step(kernels: Kernels) -> dict[int, Compiled]:
    """Forward step -> what its one binary is like."""
    return {int(step): facts for step, found in kernels.facts.items() if step.isdecimal() for facts in found.values()}


def _by_source(small: Program, full: Program, live: Mapping[int, bool]) -> dict[int, bool]:
    """Liveness of the functions at full shape, found at the small one: the same text, whatever the order of the launches."""
    known = {small.functions[index].source: alive for index, alive in live.items()}
    return {index: known.get(function.source, False) for index, function in enumerate(full.functions)}
