"""An evaluation on a GPU: traced and compiled on the CPU, then one stay on the GPU that tunes, judges and times at full shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.to_thread

from rlkernel.evaluator.cards.baselines import BaselineStore
from rlkernel.evaluator.cards.gpu_runner import GpuRunner
from rlkernel.evaluator.cards.kept_studies import KeptStudies
from rlkernel.evaluator.cards.kept_times import KeptTimes
from rlkernel.evaluator.cards.studies import Studies
from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.ended import compared_at
from rlkernel.evaluator.gpu_stay import Stay, Stays
from rlkernel.evaluator.judging.verdict import Facts, Times, combine, op_facts
from rlkernel.evaluator.messages.children import StepTime
from rlkernel.evaluator.messages.gpu import Known, Measured, Tables, Task
from rlkernel.evaluator.messages.oracle import Brief
from rlkernel.evaluator.processes.child import Child
from rlkernel.evaluator.program.schema import Launch, Program
from rlkernel.evaluator.program.variant import Specs, Traced
from rlkernel.evaluator.stages import Stages
from rlkernel.types import Evaluation, OpFact, Precision, Problem


class GpuPath:
    """Judges candidates on any of `runners`."""

    def __init__(self, stages: Stages, runners: Sequence[GpuRunner], kept_in: Path | None) -> None:
        """kept_in: the directory for what is measured of references; None keeps it in memory."""
        config = stages.config
        self.runners = runners
        self.stages = stages
        baselines = BaselineStore(None if kept_in is None else kept_in / "baselines.jsonl")
        kept = KeptStudies(None if kept_in is None else kept_in / "studies.jsonl", precision=config.precision)
        self._times = KeptTimes(baselines, precision=config.precision)
        self._studies = Studies(config, self._times, kept)
        self._stays = Stays(runners, self._studies, config.limits.gpu_seconds)

    @property
    def drifts(self) -> int:
        """How many references' times were found to differ from the stored ones."""
        return self._times.drifts

    async def evaluate(self, oracle: Child, problem: Problem, code: str, clock: Clock) -> Evaluation:
        """Judge one candidate. Raises Ended, BrokenReference, EvaluatorFailed or RunnerFailed."""
        fits = await self.stages.fitted(oracle, problem, self.stages.config.limits.gpu_memory_bytes)
        with compared_at(fits.sizes):
            found = await self._judge(oracle, replace(problem, source=fits.source), code, clock)
        return replace(found, sizes=fits.sizes)

    async def _judge(self, oracle: Child, problem: Problem, code: str, clock: Clock) -> Evaluation:
        """Judge one candidate at the problem's own sizes."""
        stages, config = self.stages, self.stages.config
        brief = await stages.brief(oracle, problem, modelled=False)
        variant = brief.variants[1]
        found, _ = await stages.trace(code, [variant], clock)
        (traced,) = found.traces
        with clock.stage("compile"):
            kernels, cubins = await self._compile(traced, variant.specs)
        task = Task(
            problem.name, problem.source, brief.modal, config.precision, config.limits.forward_seconds, traced.program,
            traced.other, kernels, variant.replaced, config.timing_width,
        )  # fmt: skip
        with clock.stage("run"):
            stay = await self._stays.stay(problem, brief, task, cubins, clock)
        measured = stay.judged.measured
        times = None if measured is None else await self._times_of(stay.runner, problem, measured)
        now = clock.now
        return await anyio.to_thread.run_sync(lambda: combine(facts_of(stay, task, brief, times), now))  # of up to 131,072 steps

    async def _compile(self, traced: Traced, specs: Specs) -> tuple[Tables, dict[str, bytes]]:
        """Facts about the candidate's binaries in both modes, and the binaries by key."""
        cubins: dict[str, bytes] = {}

        async def one(program: Program | None) -> dict[str, dict[int, Compiled]]:
            if program is None or not any(isinstance(step, Launch) for step in (*program.once, *program.forward)):
                return {}
            made = await self.stages.compile(program, specs, None)
            cubins.update(made.cubins)
            return made.facts

        return Tables(await one(traced.program), await one(traced.other)), cubins

    async def _times_of(self, runner: GpuRunner, problem: Problem, measured: Measured) -> Times:
        """The measured times; beside it the reference's is kept."""
        timed, compiled_us = measured.speedup, self._studies.compiled_us(runner, problem)
        await self._times.keep(runner.gpu, problem, timed, compiled_us)
        return Times(
            "measured", timed.reference_us, timed.candidate_us, timed.low, timed.high, timed.trials, measured.host_us, compiled_us
        )


def facts_of(stay: Stay, task: Task, brief: Brief, times: Times | None) -> Facts:
    """What the stages found out about the candidate `task`."""
    program, judged = task.program, stay.judged
    chosen: dict[int, Compiled] = {}
    for name, configs in task.kernels.program.items():
        if name.isdecimal() and (choice := judged.choices.get(int(name), 0)) in configs:
            chosen[int(name)] = configs[choice]
    rows, live = (judged.measured.rows, judged.live) if judged.measured is not None else _untimed(program)
    return Facts(
        program=program, kernels=chosen, rows=rows, live=live, matches=judged.matches,
        other_mode_only=judged.other_mode and task.other is not None, detail=judged.detail, error=judged.error,
        close=judged.close, times=times, floor_us=brief.measured_floor_us, reference_ops=_reference_ops(stay.known),
        strict=task.precision is Precision.STRICT,
    )  # fmt: skip


def _untimed(program: Program) -> tuple[list[StepTime], dict[int, bool]]:
    """Times and liveness of a candidate that is wrong: it is not timed, and a launch that stores may be live."""
    launches = [(index, step) for index, step in enumerate(program.forward) if isinstance(step, Launch)]
    rows = [StepTime(index, 0.0, function=step.function) for index, step in launches]
    return rows, {step.function: True for _, step in launches}


def _reference_ops(known: Known) -> tuple[OpFact, ...]:
    return op_facts(known.rows, max(sum(row.us for row in known.rows), 1e-3))
