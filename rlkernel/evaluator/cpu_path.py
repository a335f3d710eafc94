"""An evaluation without a GPU: traced at two sizes, interpreted at the small one, its time modelled at the full one."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rlkernel.errors import BrokenReference
from rlkernel.evaluator import wire
from rlkernel.evaluator.compile.binaries import Kernels
from rlkernel.evaluator.judging.verdict import Facts, Times, census, combine
from rlkernel.evaluator.processes.fork_server import Child
from rlkernel.evaluator.program import schema as programs
from rlkernel.evaluator.program.schema import Program
from rlkernel.evaluator.stages import Clock, Ended, Stages, specs_at, with_body
from rlkernel.types import Evaluation, OpFact, Problem, Status


class CpuPath:
    """Judges one candidate at a time per oracle."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages

    async def evaluate(self, oracle: Child, problem: Problem, code: str, clock: Clock) -> Evaluation:
        """Raises Ended, BrokenReference or EvaluatorFailed."""
        stages, config = self._stages, self._stages.config
        prepared = await stages.prepare(oracle, problem)
        small_traced, full_traced = await stages.trace(code, prepared["variants"], clock)
        small, other, full = small_traced.program, small_traced.other, full_traced.program
        specs = specs_at(prepared["variants"][1])
        if prepared["unpriced"]:
            unknown = ", ".join(sorted(set(prepared["unpriced"])))
            raise BrokenReference(f"{problem.name}: without a GPU no time is known for {unknown}")
        kernels, configs = await self._compile(full, specs, clock)
        with clock.stage("run"):
            about = {"do": "rounds", "other": other is not None, **stages.about(problem)}
            rounds, body = await stages.ask_oracle(oracle, wire.pack(about))
            header = {
                "do": "run", "program": programs.to_json(small), "other": None if other is None else programs.to_json(other),
                "full": programs.to_json(full), "full_specs": specs, "profile": config.profile, "rounds": rounds["rounds"],
                "configs": {str(step): chosen for step, chosen in configs.items()},
            }  # fmt: skip
            ran, outputs = await stages.job("run", with_body(header, body), config.limits.run_seconds)
            question = with_body({"do": "compare", "rounds": ran.get("rounds")}, outputs)
            compared, _ = await stages.ask_oracle(oracle, question)
        if "malformed" in compared:
            raise Ended(Status.CRASH, f"the runner's answer is malformed: {compared['malformed']}")
        modelled_us = max(sum(row["us"] for row in ran["rows"]), 1e-3)
        facts = Facts(
            program=full, same_work=census(small) == census(full), kernels=kernels, rows=ran["rows"],
            live=_by_source(small, full, {int(k): bool(v) for k, v in ran["live"].items()}),
            unwritten=bool(ran["unwritten"]), matches=bool(compared["matches"]),
            other_mode_only=bool(compared["other"]) and other is not None, detail=str(compared["detail"]),
            error=float(compared["error"]), times=Times.modelled(float(prepared["reference_us"]), modelled_us),
            floor_us=float(prepared["floor_us"]), reference_ops=tuple(OpFact(**op) for op in prepared["reference_ops"]),
        )  # fmt: skip
        return combine(facts, clock.now)

    async def _compile(
        self, full: Program, specs: dict[str, Any], clock: Clock
    ) -> tuple[dict[int, dict[str, Any]], dict[int, int]]:
        """(forward step -> what its binary is like, step -> the configuration that was compiled; -1 - i: of step i of
        `__init__`).

        Of an autotuned launch, the fastest configuration that compiles; no other one is run or priced.
        """
        if not full.launches:
            return {}, {}
        orders: dict[int, list[int]] = {}
        if any(len(launch.configs) > 1 for launch in full.launches):
            with clock.stage("run"):
                header = {
                    "do": "price",
                    "full": programs.to_json(full),
                    "full_specs": specs,
                    "profile": self._stages.config.profile,
                }
                priced, _ = await self._stages.job("run", wire.pack(header), self._stages.config.limits.run_seconds)
                orders = _orders(priced)
        with clock.stage("compile"):
            found = await self._stages.compile(full, specs, orders)
        configs = {_number(step): next(iter(choices)) for step, choices in found.facts.items()}
        return _as_facts(found), configs


def _number(step: str) -> int:
    """ "3" -> 3, "init:0" -> -1."""
    return int(step) if step.isdecimal() else -1 - int(step.removeprefix("init:"))


def _orders(priced: dict[str, Any]) -> dict[int, list[int]]:
    """A runner's reply about configurations. Raises Ended."""
    try:
        return {int(step): [int(choice) for choice in order] for step, order in priced["orders"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Ended(Status.CRASH, "the runner's answer is malformed: no orders of configurations") from None


def _as_facts(kernels: Kernels) -> dict[int, dict[str, Any]]:
    """Forward step -> what its one binary is like."""
    return {int(step): asdict(c) for step, found in kernels.facts.items() if step.isdecimal() for c in found.values()}


def _by_source(small: Program, full: Program, live: dict[int, bool]) -> dict[int, bool]:
    """Liveness of the functions at full shape, found at the small one: the same text, whatever the order of the launches."""
    known = {small.functions[index].source: alive for index, alive in live.items()}
    return {index: known.get(function.source, False) for index, function in enumerate(full.functions)}
