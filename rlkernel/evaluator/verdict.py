"""From the stages' facts to one Evaluation. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rlkernel.evaluator.program import Launch, Op, Program
from rlkernel.types import Evaluation, LaunchFact, OpFact, Seconds, Status

MAX_DETAIL = 400


def failed(status: Status, detail: str, seconds: Seconds) -> Evaluation:
    """A candidate that ended before its outputs could be compared."""
    printable = "".join(c if c.isprintable() or c == "\n" else " " for c in detail[:MAX_DETAIL])
    return Evaluation(status, printable, seconds=seconds)


def census(program: Program) -> tuple[frozenset[str], frozenset[str]]:
    """The kernels that `forward` launches and the operators that it calls, without counts."""
    kernels = frozenset(program.functions[s.function].source for s in program.forward if isinstance(s, Launch))
    return kernels, frozenset(s.op for s in program.forward if isinstance(s, Op))


@dataclass(frozen=True, slots=True)
class Facts:
    """What the stages found out about one candidate whose Program ran."""

    program: Program
    """At full shape."""
    same_work: bool
    """The census is the same at small and at full shape."""
    kernels: dict[int, dict[str, Any]]
    """Forward step -> what its binary is like."""
    rows: list[dict[str, Any]]
    """Modelled time per step: {"step", "function" or "op", "us"}."""
    live: dict[int, bool]
    """Function -> whether skipping its launches changes the output."""
    unwritten: bool
    """At full shape the launches write less than half of an output that only they write."""
    matches: bool
    other_mode_only: bool
    """The first miss was in the other of train and eval mode, and the candidate does other work there."""
    detail: str
    error: float
    reference_us: float
    floor_us: float
    reference_ops: tuple[OpFact, ...]


def launch_facts(facts: Facts, total: float) -> tuple[LaunchFact, ...]:
    grouped: dict[int, list[dict[str, Any]]] = {}
    for row in facts.rows:
        if "function" in row:
            grouped.setdefault(row["function"], []).append(row)
    found = []
    for function, rows in grouped.items():
        us = sum(row["us"] for row in rows)
        binaries = [facts.kernels[row["step"]] for row in rows if row["step"] in facts.kernels]
        live = facts.live.get(function, False) and any(b["stores"] for b in binaries)
        found.append(
            LaunchFact(
                facts.program.functions[function].name, len(rows), us, us / total, live,
                registers=max((b["registers"] for b in binaries), default=0),
                spills=max((b["spills"] for b in binaries), default=0),
                shared_bytes=max((b["shared_bytes"] for b in binaries), default=0),
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda fact: -fact.us))


def op_facts(rows: list[dict[str, Any]], total: float) -> tuple[OpFact, ...]:
    grouped: dict[str, list[float]] = {}
    for row in rows:
        if "op" in row:
            grouped.setdefault(".".join(row["op"].split(".")[:2]), []).append(row["us"])
    found = [OpFact(op, len(us), sum(us), sum(us) / total) for op, us in grouped.items()]
    return tuple(sorted(found, key=lambda fact: -fact.us))


def combine(facts: Facts, seconds: Seconds) -> Evaluation:
    """The status in order of precedence: what is wrong before what is idle before what is impossible."""
    total = max(sum(row["us"] for row in facts.rows), 1e-3)
    launches, ops = launch_facts(facts, total), op_facts(facts.rows, total)
    coverage = sum(fact.us for fact in launches if fact.live) / total
    status, detail = Status.CORRECT, ""
    if not facts.matches:
        status = Status.INCONSISTENT if facts.other_mode_only else Status.INCORRECT
        detail = facts.detail
    elif not facts.same_work:
        status, detail = Status.INCONSISTENT, "forward does other work at full shape than at the shape that was checked"
    elif not any(fact.live for fact in launches):
        status = Status.NO_KERNEL
        idle = ", ".join(fact.kernel for fact in launches)
        detail = f"kernel {idle} is launched but its result does not reach the output" if idle else "no Triton kernel is launched"
    elif facts.unwritten:
        status, detail = Status.IMPLAUSIBLE, "at full shape the kernels write only a part of the output"
    elif total < facts.floor_us:
        status = Status.IMPLAUSIBLE
        detail = f"{total:.1f} us is less than the problem's data and arithmetic take ({facts.floor_us:.1f} us)"
    speedup = facts.reference_us / total
    return Evaluation(
        status, detail[:MAX_DETAIL], matches=facts.matches, speedup=speedup, speedup_low=speedup, speedup_high=speedup,
        reference_us=facts.reference_us, candidate_us=total, timing="modelled", coverage=coverage, launches=launches, ops=ops,
        max_error=facts.error, reference_ops=facts.reference_ops, seconds=seconds,
    )  # fmt: skip
