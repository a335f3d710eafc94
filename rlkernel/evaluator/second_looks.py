"""A second look at a candidate without a GPU, at longer sizes than those at which it was compared first.

Two kinds of candidates get one, and no others:

- one that is right, and has a loop, or an axis of its grid, that is longer at full shape than at the first sizes, and too short
  there to show how it goes on (`cpu.extents`). It must be right at longer sizes, too.
- one that is not right, and may be made for its own sizes: its text has one of them as a number, its kernels fail while they run,
  or it calls other kernels at full shape. If it is right at longer sizes, it is right.

A look that takes too long, or that ends in anything but outputs, says nothing.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.cpu_judge import CpuJudge, Judged, TooLong
from rlkernel.evaluator.judging.resizing import numbers_of
from rlkernel.evaluator.messages.oracle import Longer
from rlkernel.evaluator.processes.fork_server import Child
from rlkernel.evaluator.stages import Clock, Ended, Stages
from rlkernel.reference_text import shrink, small_constants
from rlkernel.types import Evaluation, Problem, Status

MOST_WORK = 300_000.0
"""The work of all rounds of a candidate, see `cpu.pace`, above which sizes are made smaller: about 10 s of a core."""
MOST_CONFIRMING = 4
"""Looks at a candidate that is right."""
ENOUGH = 4
"""Turns that show how a loop goes on."""
MOST_EXCUSING = 4
"""Looks at a candidate that is not."""
EIGHTH = 3
"""Halvings of a size that is still far above the first one, where the full one may be too much work."""
TELLING = 32
"""From which number on a size that a text repeats says that the text is made for it."""


class SecondLooks:
    """Looks again, with a judge."""

    def __init__(self, stages: Stages, judge: CpuJudge) -> None:
        self._stages = stages
        self._judge = judge

    async def after(self, oracle: Child, problem: Problem, code: str, clock: Clock, found: Judged | Ended) -> Evaluation | None:
        """What longer sizes say in place of what was found first; None where that stands. Raises EvaluatorFailed."""
        if isinstance(found, Judged) and found.evaluation.correct:
            return await self._confirm(oracle, problem, code, clock, found) if found.short else None
        if may_be_made_for_its_sizes(problem, code, found):
            return await self._excuse(oracle, problem, code, clock, found)
        return None

    async def _confirm(self, oracle: Child, problem: Problem, code: str, clock: Clock, found: Judged) -> Evaluation | None:
        """What is wrong at longer sizes with a candidate that is right at the first ones: at sizes that should be long enough,
        and where they are not, at the longest."""
        short = found.short
        halvings = max(0, min(one.count for one in short).bit_length() - ENOUGH.bit_length())
        looks = await self._stages.lengthened(oracle, problem, halvings)
        if halvings:
            looks += await self._stages.lengthened(oracle, problem)
        for look in looks[:MOST_CONFIRMING]:
            again = await self._look(oracle, replace(problem, source=look.source), code, clock)
            if again is None or not again.same_work:
                continue
            if again.evaluation.matches is False and await self._right_beside(oracle, problem, look, code, clock):
                return replace(again.evaluation, sizes=look.sizes)
            short &= again.short
            if not short:
                return None
        return None

    async def _right_beside(self, oracle: Child, problem: Problem, look: Longer, code: str, clock: Clock) -> bool:
        """Whether a candidate is right where only those sizes differ from the first ones that were made smaller for a look."""
        if look.beside is None:
            return True
        beside = await self._look(oracle, replace(problem, source=look.beside), code, clock)
        return beside is not None and beside.evaluation.matches is True

    async def _excuse(self, oracle: Child, problem: Problem, code: str, clock: Clock, found: Judged | Ended) -> Evaluation | None:
        """The verdict at the first longer sizes at which a candidate is right; of one whose kernels did not run at the first
        sizes, else that where they run."""
        longest = await self._stages.lengthened(oracle, problem)
        looks = longest + await self._stages.lengthened(oracle, problem, EIGHTH)
        if isinstance(found, Judged) and found.evaluation.matches:  # it does other work, perhaps from far fewer rows on
            looks = (*looks[len(longest) :], *longest)
        ran: Evaluation | None = None
        for look in looks[:MOST_EXCUSING]:
            again = await self._look(oracle, replace(problem, source=look.source), code, clock)
            if again is None:
                continue
            if again.evaluation.correct:
                return replace(again.evaluation, sizes=look.sizes)
            ran = ran or replace(again.evaluation, sizes=look.sizes)
        return ran if isinstance(found, Ended) else None

    async def _look(self, oracle: Child, problem: Problem, code: str, clock: Clock) -> Judged | None:
        try:
            return await self._judge.judge(oracle, problem, code, clock, MOST_WORK)
        except (Ended, TooLong, BrokenReference):
            return None


def may_be_made_for_its_sizes(problem: Problem, code: str, found: Judged | Ended) -> bool:
    """Whether a candidate may have failed because it was compared at sizes that are not its own."""
    if isinstance(found, Ended):
        if found.ran and found.status in (Status.OUT_OF_BOUNDS, Status.RUNTIME_ERROR):
            return True
        return found.status in (Status.RUNTIME_ERROR, Status.CRASH) and _repeats_a_size(problem, code)
    if found.evaluation.matches:
        return not found.same_work
    return _repeats_a_size(problem, code)


def _repeats_a_size(problem: Problem, code: str) -> bool:
    """Whether a text has a size of the full shape as a number, other than in a constant that has the reference's name."""
    constants = small_constants(problem.source, name=problem.name)
    sizes = {number for full, small in constants.values() if full != small for number in numbers_of(full)}
    try:
        tree = ast.parse(shrink(code, constants))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    numbers = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is int}
    return any(size >= TELLING for size in sizes & numbers)
