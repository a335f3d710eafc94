"""One judgement without a GPU: traced at two sizes, interpreted at the small one, its time modelled at the full one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlkernel.errors import BrokenReference
from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.binaries import Compiled, Kernels
from rlkernel.evaluator.judging.verdict import Facts, Times, census, combine
from rlkernel.evaluator.messages import codec
from rlkernel.evaluator.messages.children import Extent, PriceRequest, Prices, Ran, RunRequest, TooLarge
from rlkernel.evaluator.messages.oracle import Compare, Compared, DrawRounds, Malformed, Rounds
from rlkernel.evaluator.processes.fork_server import Child
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.program.variant import Specs, Traced
from rlkernel.evaluator.stages import Clock, Ended, Stages, nonsense
from rlkernel.types import Evaluation, Problem, Status


class TooLong(Exception):
    """The interpreter would take too long at these sizes."""


@dataclass(frozen=True, slots=True)
class Judged:
    """An evaluation, and what the sizes at which results were compared have shown of it."""

    evaluation: Evaluation
    same_work: bool
    """Whether forward launches and calls the same at these sizes as at full shape."""
    short: frozenset[Extent]
    """The loops that have too few turns at these sizes to show how they go on, and more at full shape; axes of grids likewise."""


class CpuJudge:
    """Judges one candidate at a time per oracle, at given sizes."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages

    async def judge(self, oracle: Child, problem: Problem, code: str, clock: Clock, most_work: float | None) -> Judged:
        """Judge one candidate at the problem's own sizes. Raises Ended, BrokenReference, EvaluatorFailed, and TooLong where its
        rounds take more than `most_work`, see `cpu.pace`."""
        stages = self.stages
        brief = await stages.brief(oracle, problem)
        small, full = await stages.trace(code, brief.variants, clock)
        specs = brief.variants[1].specs
        if brief.unpriced:
            unknown = ", ".join(sorted(set(brief.unpriced)))
            raise BrokenReference(f"{problem.name}: without a GPU no time is known for {unknown}")
        key = stages.key(problem, code, (small, full))
        kernels = await self._compile(full.program, specs, key, clock)
        with clock.stage("run"):
            try:
                ran, compared = await self._run(oracle, problem, key, small, full.program, specs, kernels, most_work)
            except Ended as end:
                end.ran = True
                raise
        modelled_us = max(sum(row.us for row in ran.rows), 1e-3)
        facts = Facts(
            program=full.program, same_work=census(small.program) == census(full.program), kernels=_by_step(kernels),
            rows=ran.rows, live=_by_source(small.program, full.program, ran.live), unwritten=ran.unwritten,
            matches=compared.matches, other_mode_only=compared.other and small.other is not None, detail=compared.detail,
            error=compared.error, close=compared.close, times=Times.modelled(brief.reference_us, modelled_us),
            floor_us=brief.floor_us, products=brief.products, least_share=brief.least_share,
            reference_ops=brief.reference_ops,
        )  # fmt: skip
        return Judged(combine(facts, clock.now), facts.same_work, frozenset(ran.short))

    async def _compile(self, full: Program, specs: Specs, key: str, clock: Clock) -> Kernels:
        """One binary for each launch; of an autotuned one, the fastest configuration that compiles. No other is run or priced.
        Raises Ended."""
        if not full.launches:
            return Kernels({}, {})
        orders: dict[int, tuple[int, ...]] = {}
        if any(len(launch.configs) > 1 for launch in full.launches):
            with clock.stage("run"):
                config = self.stages.config
                question = codec.pack(PriceRequest(full, specs, config.profile, key))
                priced, _ = await self.stages.job("run", question, config.limits.run_seconds, Prices)
                orders = priced.orders
        with clock.stage("compile"):
            return await self.stages.compile(full, specs, orders)

    async def _run(
        self, oracle: Child, problem: Problem, key: str, small: Traced, full: Program, specs: Specs, kernels: Kernels,
        most_work: float | None,
    ) -> tuple[Ran, Compared]:  # fmt: skip
        """The candidate on rounds that are drawn from its key, and what the oracle says of its outputs. Raises Ended and
        TooLong."""
        stages, config = self.stages, self.stages.config
        drawing = codec.pack(DrawRounds(stages.about(problem), key, small.other is not None, *small.calls_before))
        drawn, inputs = await stages.ask_oracle(oracle, drawing, Rounds)
        configs = {step: next(iter(choices)) for step, choices in kernels.facts.items()}
        request = RunRequest(
            small.program, small.other, full, specs, config.profile, config.precision, drawn.rounds, key, configs,
            most_work,
        )  # fmt: skip
        ran: Ran | TooLarge
        ran, outputs = await stages.job("run", codec.pack(request, inputs), config.limits.run_seconds, Ran, TooLarge)
        if isinstance(ran, TooLarge):
            raise TooLong
        try:
            check(ran, small.program, full)
        except wire.BadMessage as error:
            raise nonsense("run", error) from error
        compared: Compared | Malformed
        compared, _ = await stages.ask_oracle(oracle, codec.pack(Compare(ran.rounds), outputs), Compared, Malformed)
        if isinstance(compared, Malformed):
            raise Ended(Status.CRASH, f"the runner's answer is malformed: {compared.why}")
        return ran, compared


def check(ran: Ran, small: Program, full: Program) -> None:
    """Whether a child's answer speaks of steps and kernels that there are. Raises wire.BadMessage."""
    for row in ran.rows:
        if row.step >= len(full.forward) or (row.function is not None and row.function >= len(full.functions)):
            raise wire.BadMessage("the time of a step that there is not")
    if any(one.function >= len(full.functions) for one in ran.short) or any(one >= len(small.functions) for one in ran.live):
        raise wire.BadMessage("a kernel that there is not")


def _by_step(kernels: Kernels) -> dict[int, Compiled]:
    """Forward step -> what its one binary is like."""
    return {int(step): facts for step, found in kernels.facts.items() if step.isdecimal() for facts in found.values()}


def _by_source(small: Program, full: Program, live: Mapping[int, bool]) -> dict[int, bool]:
    """Liveness of the functions at full shape, found at the small one: the same text, whatever the order of the launches."""
    known = {small.functions[index].source: alive for index, alive in live.items()}
    return {index: known.get(function.source, False) for index, function in enumerate(full.functions)}
