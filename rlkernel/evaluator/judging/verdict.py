"""Makes one Evaluation of what the stages found out. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rlkernel.evaluator.compile.binaries import Compiled
from rlkernel.evaluator.judging.costs.least_work import LEAST, OF_DOTS, WHOLE
from rlkernel.evaluator.messages.children import StepTime
from rlkernel.evaluator.messages.judgement import Unread
from rlkernel.evaluator.program.first_call import FIRST_CALL
from rlkernel.evaluator.program.operators import is_random
from rlkernel.evaluator.program.schema import Launch, Op, Program
from rlkernel.types import Closeness, Evaluation, LaunchFact, OpFact, Seconds, Status, Timing

MAX_DETAIL = 400
WITHOUT_GPU = "without a GPU, an algorithm that needs less cannot be told from work left out at full shape"
LIMITED = (
    "a fixed number decides at full shape alone, and changes the result where it is made as small as the problem is; "
    "write sizes as arguments, or judge it on a GPU"
)
LEAST_EFFORT = 2 / 3
"""The share of what kernels compute for an element where results are compared that they must compute at full shape. Masks that
are needed at the small shape alone are a part of it: among the red team's honest files the least share is 71 %, of a kernel whose
last program alone finishes a sum."""
LEAST_WHERE_TOLD = 0.5
"""The same where memory tells how much is computed: rows of lengths fill another share of their blocks where they are longer."""
SMALL_ERROR = 1e-2
"""Below it, tf32 may be why an output is wrong."""
ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
"""Where an object is, as Python prints it."""


def failed(status: Status, detail: str, seconds: Seconds) -> Evaluation:
    """A candidate that ended before its outputs could be compared."""
    return Evaluation(status, printable(detail), seconds=seconds)


def printable(detail: str) -> str:
    """The detail, bounded and without control characters: it is shown to models and people. Addresses, which differ from process
    to process, are left out.

    >>> printable("unhashable <Kernel at 0x7f31c05e2d40>")
    'unhashable <Kernel at 0x...>'
    """
    detail = ADDRESS.sub("at 0x...", detail)
    return "".join(c if c.isprintable() or c == "\n" else " " for c in detail[:MAX_DETAIL])


def census(program: Program) -> tuple[frozenset[str], frozenset[str]]:
    """The kernels that `forward` launches and the operators that it calls, without counts."""
    kernels = frozenset(program.functions[s.function].source for s in program.forward if isinstance(s, Launch))
    return kernels, frozenset(s.op for s in program.forward if isinstance(s, Op))


@dataclass(frozen=True, slots=True)
class Times:
    """Device time of both sides, microseconds."""

    timing: Timing
    reference_us: float
    candidate_us: float
    speedup_low: float
    speedup_high: float
    trials: int | None = None
    host_us: float | None = None
    compiled_us: float | None = None

    @staticmethod
    def modelled(reference_us: float, candidate_us: float) -> Times:
        speedup = reference_us / candidate_us
        return Times("modelled", reference_us, candidate_us, speedup, speedup)

    @property
    def speedup(self) -> float:
        return self.reference_us / self.candidate_us


@dataclass(frozen=True, slots=True)
class Facts:
    """What the stages found out about one candidate whose Program ran."""

    program: Program
    """The candidate at full shape."""
    kernels: Mapping[int, Compiled]
    """Forward step -> what its binary is like, in the configuration that ran."""
    rows: Sequence[StepTime]
    """The time of each step at full shape, 0 where it was not timed."""
    live: Mapping[int, bool]
    """Function -> whether skipping its launches changes the output."""
    matches: bool
    other_mode_only: bool
    """The first miss was in the other of train and eval mode, and the candidate does other work there."""
    detail: str
    error: float
    times: Times | None
    """None if it was not timed, because its outputs are wrong."""
    floor_us: float
    reference_ops: tuple[OpFact, ...]
    close: Closeness | None = None
    """How KernelBench would compare the outputs."""
    same_work: bool = True
    """The census is the same at small and at full shape."""
    products: float = 0.0
    """Operations of the reference's products, where the candidate's operations were counted at full shape."""
    least_share: float = LEAST
    """The share of these that it must do. Short launches hide from a bound on time what was left out."""
    unwritten: bool = False
    """At full shape the launches leave out a part of an output that only they write."""
    unread: Unread = Unread.NOTHING
    """What is never read in part at full shape, and is needed to the last element."""
    limited: bool = False
    """Fixed numbers decide what kernels do at full shape alone, and change the result once they decide at the shape that was
    checked."""
    tunes: bool = False
    """The first call of forward, in which autotuners run, gives something else."""
    effort: float = 1.0
    """The share of what kernels compute for an element at the shape that was checked which they compute at full shape."""
    told: bool = False
    """Whether memory tells how much that is."""
    strict: bool = False
    """Whether nobody may compute products in tf32."""


def launch_facts(facts: Facts, total: float) -> tuple[LaunchFact, ...]:
    grouped: dict[int, list[StepTime]] = {}
    for row in facts.rows:
        if row.function is not None:
            grouped.setdefault(row.function, []).append(row)
    found = []
    for function, rows in grouped.items():
        us = sum(row.us for row in rows)
        binaries = [facts.kernels[row.step] for row in rows if row.step in facts.kernels]
        live = facts.live.get(function, False) and any(b.stores for b in binaries)
        found.append(
            LaunchFact(
                facts.program.functions[function].name, len(rows), us, us / total, live,
                registers=max((b.registers for b in binaries), default=0),
                spills=max((b.spills for b in binaries), default=0),
                shared_bytes=max((b.shared_bytes for b in binaries), default=0),
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda fact: -fact.us))


def op_facts(rows: Sequence[StepTime], total: float) -> tuple[OpFact, ...]:
    grouped: dict[str, list[float]] = {}
    for row in rows:
        if row.op is not None:
            grouped.setdefault(".".join(row.op.split(".")[:2]), []).append(row.us)
    found = [OpFact(op, len(us), sum(us), sum(us) / total) for op, us in grouped.items()]
    return tuple(sorted(found, key=lambda fact: -fact.us))


def _own_randomness(facts: Facts) -> str:
    """What to say of a wrong answer to a reference that draws random numbers, if the candidate draws others."""
    drawing = [fact for fact in facts.reference_ops if is_random(fact.op) and "attention" not in fact.op]  # it seldom drops out
    wanted = Counter({fact.op: fact.calls for fact in drawing})
    steps = (step for step in facts.program.forward if isinstance(step, Op))
    drawn = Counter(".".join(step.op.split(".")[:2]) for step in steps if is_random(step.op))
    if not wanted or drawn == wanted:
        return ""
    return (
        f"; the reference draws random numbers by {', '.join(sorted(wanted))}: the same operator on the same shape draws the same"
    )


def _own_tf32(facts: Facts) -> str:
    """What to say of a small error of a candidate whose products are in tf32, Triton's default, where nobody may use it."""
    if not facts.strict or not 0.0 < facts.error < SMALL_ERROR or not any(kernel.tf32 for kernel in facts.kernels.values()):
        return ""
    return '; its tl.dot computes in tf32, which strict precision does not allow: pass input_precision="ieee"'


def _status(facts: Facts, launches: tuple[LaunchFact, ...]) -> tuple[Status, str]:
    """The status and its detail. What is wrong is told before what is idle, and that before what is impossible."""
    if not facts.matches:
        detail = facts.detail + _own_randomness(facts) + _own_tf32(facts)
        return (Status.INCONSISTENT if facts.other_mode_only else Status.INCORRECT), detail
    if facts.tunes:
        return Status.INCORRECT, FIRST_CALL
    if not facts.same_work:
        return Status.INCONSISTENT, "forward does other work at full shape than at the shape that was checked"
    if not any(fact.live for fact in launches):
        idle = ", ".join(fact.kernel for fact in launches)
        what = f"kernel {idle} is launched, but the output is the same without it" if idle else "no Triton kernel is launched"
        return Status.NO_KERNEL, what
    if facts.unwritten:
        return Status.IMPLAUSIBLE, "at full shape the kernels write only a part of the output"
    if facts.unread:
        return Status.IMPLAUSIBLE, f"at full shape a part of {facts.unread} is never read; {WITHOUT_GPU}"
    if facts.limited:
        return Status.IMPLAUSIBLE, LIMITED
    if facts.effort < (LEAST_WHERE_TOLD if facts.told else LEAST_EFFORT):
        share = f"{facts.effort:.0%} of what kernels compute for an element where results are compared is done at full shape"
        return Status.IMPLAUSIBLE, f"{share}: do the same work at every size; {WITHOUT_GPU}"
    if facts.times is not None and facts.times.candidate_us < facts.floor_us:
        return Status.IMPLAUSIBLE, f"{facts.times.candidate_us:.1f} us is less than {_least(facts.times.timing, facts.floor_us)}"
    done, least = sum(row.operations for row in facts.rows), facts.least_share
    if least >= WHOLE:  # what leads to the elements would hide what is left out of them
        done, least = min(done, sum(row.of_products for row in facts.rows)), OF_DOTS
    if done < least * facts.products:
        share = f"{done / facts.products:.0%} of the operations of the reference's products are done at full shape"
        return Status.IMPLAUSIBLE, f"{share}; {WITHOUT_GPU}"
    return Status.CORRECT, ""


def _least(timing: Timing, floor_us: float) -> str:
    """What a time was held against."""
    if timing == "measured":
        return f"a launch and writing the outputs take ({floor_us:.1f} us)"
    return f"the problem's data and arithmetic take ({floor_us:.1f} us); {WITHOUT_GPU}"


def combine(facts: Facts, seconds: Seconds) -> Evaluation:
    """The evaluation: its status, and what is known beside it."""
    total = max(sum(row.us for row in facts.rows), 1e-3)
    launches, ops = launch_facts(facts, total), op_facts(facts.rows, total)
    status, detail = _status(facts, launches)
    times = facts.times
    found = Evaluation(
        status, printable(detail), matches=facts.matches and not facts.tunes, launches=launches, ops=ops, max_error=facts.error,
        reference_ops=facts.reference_ops, seconds=seconds, kernelbench_close=facts.close,
    )  # fmt: skip
    if times is None:
        return found
    return replace(
        found, speedup=times.speedup, speedup_low=times.speedup_low, speedup_high=times.speedup_high,
        reference_us=times.reference_us, candidate_us=times.candidate_us, timing=times.timing, trials=times.trials,
        host_us=times.host_us, compiled_us=times.compiled_us,
        coverage=sum(fact.us for fact in launches if fact.live) / total,
    )  # fmt: skip
