"""An evaluation on a GPU: traced and compiled on the CPU, then one stay on the GPU that tunes, judges and times at full shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import anyio.to_thread

from rlkernel.errors import BrokenReference, EvaluatorFailed
from rlkernel.evaluator import wire
from rlkernel.evaluator.cards.baselines import Baseline, BaselineStore, Provenance, drift
from rlkernel.evaluator.cards.gpu_runner import GpuRunner, RunnerFailed, RunnerLost
from rlkernel.evaluator.cards.gpus import GpuUnavailable, Reading, read
from rlkernel.evaluator.judging.verdict import Facts, Times, combine, op_facts
from rlkernel.evaluator.processes.fork_server import Child
from rlkernel.evaluator.program import schema as programs
from rlkernel.evaluator.program.schema import Launch
from rlkernel.evaluator.stages import Clock, Ended, Stages, Traced, specs_at
from rlkernel.types import Evaluation, OpFact, Problem, Status

COMPILED_SECONDS = 120.0
_MAY_SAY = {Status.RUNTIME_ERROR, Status.OUT_OF_BOUNDS, Status.TIMEOUT, Status.CRASH}


class GpuPath:
    """Judges candidates on any of `runners`."""

    def __init__(self, stages: Stages, runners: Sequence[GpuRunner], baselines: BaselineStore) -> None:
        self.runners = runners
        self.baselines = baselines
        self.drifts = 0
        """References whose time was found to differ from the stored one."""
        self._stages = stages
        self._known: dict[tuple[str, str], dict[str, Any]] = {}
        """(GPU, problem source) -> what a runner measured of the problem."""
        self._compiled: dict[tuple[str, str], float | None] = {}
        """(GPU, problem source) -> the reference's time under torch.compile."""
        self._places: dict[str, Provenance] = {}

    async def evaluate(self, oracle: Child, problem: Problem, code: str, clock: Clock) -> Evaluation:
        """Raises Ended, BrokenReference, EvaluatorFailed or RunnerFailed."""
        stages = self._stages
        prepared = await stages.prepare(oracle, problem)
        variant = prepared["variants"][1]
        (traced,) = await stages.trace(code, [variant], clock)
        with clock.stage("compile"):
            kernels, cubins = await self._compile(traced, specs_at(variant))
        header = {
            "do": "evaluate", "name": problem.name, "source": problem.source, "modal": prepared["modal"],
            "program": programs.to_json(traced.program),
            "other": None if traced.other is None else programs.to_json(traced.other), "kernels": kernels,
            "tf32": stages.config.tf32, "seconds": stages.config.limits.forward_seconds,
        }  # fmt: skip
        with clock.stage("run"):
            runner, found = await self._on_any(problem, prepared["reference"], header, cubins, clock)
        times = await self._times(runner, problem, found) if "speedup" in found else None
        return self._combine(runner, problem, traced, kernels["program"], prepared, found, times, clock)

    async def _on_any(
        self, problem: Problem, reference: Any, header: dict[str, Any], cubins: dict[str, bytes], clock: Clock
    ) -> tuple[GpuRunner, dict[str, Any]]:
        """A stay on the GPU that fewest wait for. Raises RunnerFailed when no GPU is left."""
        while True:
            left = [runner for runner in self.runners if not runner.failed]
            runner = min(left or self.runners, key=lambda runner: runner.waiting)
            try:
                return runner, await self._stay(runner, problem, reference, header, cubins, clock)
            except RunnerFailed:
                if all(runner.failed for runner in self.runners):
                    raise

    async def _compile(self, traced: Traced, specs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
        """("program" or "other") -> step -> configuration -> facts; and the binaries by key."""
        tables: dict[str, Any] = {"program": {}, "other": {}}
        cubins: dict[str, bytes] = {}
        for name, program in (("program", traced.program), ("other", traced.other)):
            if program is not None and any(isinstance(step, Launch) for step in (*program.init, *program.forward)):
                made = await self._stages.compile(program, specs, "all")
                tables[name] = {
                    step: {str(config): asdict(facts) for config, facts in found.items()} for step, found in made.facts.items()
                }
                cubins |= made.cubins
        return tables, cubins

    async def _stay(
        self, runner: GpuRunner, problem: Problem, reference: Any, header: dict[str, Any], cubins: dict[str, bytes], clock: Clock
    ) -> dict[str, Any]:
        body = wire.Body()
        entries = {key: body.add_bytes(data) for key, data in cubins.items()}
        place = (runner.gpu.uuid, problem.source)
        limit = self._stages.config.limits.gpu_seconds
        async with runner.lease():
            if self._stages.config.compiled and place not in self._compiled:
                self._compiled[place] = await self._compiled_us(runner, problem)
            if place not in self._known:
                self._known[place] = await self._study(runner, problem, reference)
            with clock.stage("gpu"):
                message = wire.pack({**header, "binaries": entries, "known": self._known[place]}, body)
                try:
                    reply, _ = await runner.ask(message, limit)
                except RunnerLost as lost:
                    if lost.death is None:
                        raise Ended(Status.TIMEOUT, f"the GPU was silent for more than {limit:g} s") from None
                    raise Ended(Status.CRASH, f"the process that drives the GPU {lost.death.describe()}") from None
        if "broken" in reply:
            raise BrokenReference(reply["broken"])
        if "status" in reply:
            status = Status(reply["status"])
            raise Ended(status if status in _MAY_SAY else Status.CRASH, str(reply["detail"]))
        return reply

    async def _study(self, runner: GpuRunner, problem: Problem, reference: Any) -> dict[str, Any]:
        """What a runner measures of a problem, in the problem's own time, not in a candidate's. `reference`: its Program.

        Raises BrokenReference or EvaluatorFailed, one line that names the problem.
        """
        limit = self._stages.config.limits.oracle_seconds
        question = {
            "do": "study", "name": problem.name, "source": problem.source, "reference": reference,
            "tf32": self._stages.config.tf32,
        }  # fmt: skip
        reply: dict[str, Any] = {}
        for stress in (True, False):
            try:
                reply, _ = await runner.ask(wire.pack({**question, "stress": stress}), limit)
            except RunnerLost as lost:
                what = f"was silent for more than {limit:g} s" if lost.death is None else lost.death.describe()
                raise EvaluatorFailed(f"{problem.name}: the process that runs the reference on the GPU {what}") from lost
            if reply.get("retry") != "plain":
                break
        if "broken" in reply:
            raise BrokenReference(str(reply["broken"]))
        if "known" not in reply:
            why = reply.get("detail", "it lost the GPU twice")
            raise EvaluatorFailed(f"{problem.name}: the process that runs the reference on the GPU: {why}")
        known: dict[str, Any] = reply["known"]
        return known

    def _combine(
        self, runner: GpuRunner, problem: Problem, traced: Traced, kernels: dict[str, Any], prepared: dict[str, Any],
        found: dict[str, Any], times: Times | None, clock: Clock,
    ) -> Evaluation:  # fmt: skip
        chosen = {
            int(step): table[str(found["choices"].get(step, 0))]
            for step, table in kernels.items()
            if step.isdecimal() and str(found["choices"].get(step, 0)) in table
        }
        live = {int(k): bool(v) for k, v in found["live"].items()}
        rows = found.get("rows")
        if rows is None:  # a wrong candidate is not timed, and a launch that stores may be live
            launches = [(index, step) for index, step in enumerate(traced.program.forward) if isinstance(step, Launch)]
            rows = [{"step": index, "function": step.function, "us": 0.0} for index, step in launches]
            live = {step.function: True for _, step in launches}
        known = self._known[runner.gpu.uuid, problem.source]
        facts = Facts(
            program=traced.program, kernels=chosen, rows=rows, live=live,
            matches=bool(found["matches"]), other_mode_only=bool(found["other_mode"]) and traced.other is not None,
            detail=str(found["detail"]), error=float(found["error"]),
            times=times, floor_us=float(prepared["measured_floor_us"]), reference_ops=_reference_ops(known),
        )  # fmt: skip
        return combine(facts, clock.now)

    async def _compiled_us(self, runner: GpuRunner, problem: Problem) -> float | None:
        """The reference under torch.compile, from the store if it is there; None if it does not compile."""
        place = await self._place(runner)
        stored = None if place is None else self.baselines.get(problem, place)
        if stored is not None and stored.compiled_us is not None:
            return stored.compiled_us
        question = {"do": "compiled", "name": problem.name, "source": problem.source, "tf32": self._stages.config.tf32}
        answer = await runner.ask_aside(wire.pack(question), COMPILED_SECONDS)
        return None if "failed" in answer else float(answer["compiled_us"])

    async def _place(self, runner: GpuRunner) -> Provenance | None:
        """Under which key this GPU's baselines are stored; None while the card does not tell its state."""
        if runner.gpu.uuid not in self._places:
            reading = await _reading(runner)
            if reading is None:
                return None
            self._places[runner.gpu.uuid] = Provenance.here(runner.gpu, reading, self._stages.config.tf32)
        return self._places[runner.gpu.uuid]

    async def _times(self, runner: GpuRunner, problem: Problem, found: dict[str, Any]) -> Times:
        """The measured times; beside it the store of baselines is filled and drift is noticed."""
        timed = found["speedup"]
        reference_us = float(timed["reference_us"])
        compiled_us = self._compiled.get((runner.gpu.uuid, problem.source))
        place = await self._place(runner)
        if place is not None:
            low, high = float(timed["reference_low_us"]), float(timed["reference_high_us"])
            await self._store(runner, problem, Baseline(reference_us, low, high, compiled_us, int(timed["trials"]), place))
        return Times(
            "measured", reference_us, float(timed["candidate_us"]), float(timed["low"]), float(timed["high"]),
            int(timed["trials"]), float(found["host_us"]), compiled_us,
        )  # fmt: skip

    async def _store(self, runner: GpuRunner, problem: Problem, new: Baseline) -> None:
        """Keep `new` with the clocks of now if it is the first, has drifted, or adds torch.compile."""
        stored = self.baselines.get(problem, new.provenance)
        drifted = stored is not None and drift(stored, new.eager_us, new.eager_low_us, new.eager_high_us) is not None
        self.drifts += drifted
        if stored is None or drifted or (new.compiled_us is not None and stored.compiled_us is None):
            reading = await _reading(runner)
            if reading is not None and self.baselines.get(problem, new.provenance) is stored:  # no neighbour was first
                now = Provenance.here(runner.gpu, reading, self._stages.config.tf32)
                self.baselines.put(problem, replace(new, provenance=now))


async def _reading(runner: GpuRunner) -> Reading | None:
    """The card's state, which may take the driver a while. None: no verdict is lost because a card's clocks are not known."""
    try:
        return await anyio.to_thread.run_sync(read, runner.gpu)
    except GpuUnavailable:
        return None


def _reference_ops(known: dict[str, Any]) -> tuple[OpFact, ...]:
    total = max(sum(row["us"] for row in known["rows"]), 1e-3)
    return op_facts(known["rows"], total)
