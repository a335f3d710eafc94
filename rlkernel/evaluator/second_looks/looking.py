"""One look at a candidate at other sizes, and the sizes that there are to look at."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field, replace

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.cpu_judge import AtFull, CpuJudge, Judged, TooLong
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.sizes.constants import with_small
from rlkernel.evaluator.judging.sizes.host_limits import HostLimits
from rlkernel.evaluator.judging.sizes.own_sizes import OwnSizes
from rlkernel.evaluator.judging.sizes.resizing import Sizes, shortest
from rlkernel.evaluator.judging.undecided import Undecided
from rlkernel.evaluator.messages.children import Extent
from rlkernel.evaluator.messages.oracle import Longer
from rlkernel.evaluator.processes.child import Child
from rlkernel.evaluator.second_looks.budget import MOST_WORK, Budget, work_at_full
from rlkernel.evaluator.stages import Stages
from rlkernel.reference_text import prompt_source, small_constants
from rlkernel.types import Problem, Status

ENOUGH = 4
"""Turns that show how a loop goes on."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate that may be looked at again."""

    oracle: Child
    problem: Problem
    """At the sizes at which results were compared first."""
    code: str
    clock: Clock
    at_full: AtFull
    whole: Problem | None = None
    """The problem as its file is."""
    own: OwnSizes | HostLimits | None = None
    """The numbers of its text that are smaller where the problem is."""
    budget: Budget = field(default_factory=Budget)
    """What is left for looks at it."""


class Looks:
    """Looks at candidates, with a judge."""

    def __init__(self, stages: Stages, judge: CpuJudge) -> None:
        self.stages = stages
        self._judge = judge

    async def longer(self, one: Candidate, most: int, halvings: Iterable[int | None]) -> AsyncIterator[Longer]:
        """The longer sizes for as many looks, those that are halved as often as the first of `halvings` says before others; those
        that fill blocks, where it says None. Each search takes the oracle some 50 ms per problem, so that it waits until the
        sizes before have not told enough."""
        count = 0
        for number in halvings:
            for look in await self.stages.lengthened(one.oracle, one.problem, number):
                if await self._muddled(one, look.source):
                    continue
                if count == most:
                    return
                count += 1
                yield look

    async def look(
        self, one: Candidate, source: str, at_full: AtFull, *, doubted: bool = False, patient: bool = False
    ) -> Judged | Ended | None:
        """What a candidate does at other sizes; Ended where its kernels fail while they run, or it fails at full shape; None
        where that says nothing, or nothing is left for it. doubted: whether it is likely wrong, see `CpuJudge.judge`. patient:
        whether it may be as much work as a look at the full shape.

        A number of its text may stand for two sizes that are one number at full shape, and differ here: 64 for the channels and
        for a window. Who is right by either is right."""
        found = await self._look(one, source, at_full, doubted, patient)
        if found is None or (isinstance(found, Judged) and found.evaluation.matches):
            return found
        other = await self._read_otherwise(one, source)
        again = await self._look(other, source, at_full, doubted, patient) if other is not None else None
        return again if isinstance(again, Judged) and again.evaluation.matches else found

    async def _read_otherwise(self, one: Candidate, source: str) -> Candidate | None:
        """The candidate with the numbers of its text that stand for several sizes read otherwise; None where none does."""
        if not isinstance(one.own, OwnSizes):
            return None
        known = dict((await self.stages.brief(one.oracle, replace(one.problem, source=source))).counterparts)
        other = replace(one.own, least=not one.own.least)
        return replace(one, own=other) if other.at(known) != one.own.at(known) else None

    async def _look(
        self, one: Candidate, source: str, at_full: AtFull, doubted: bool, patient: bool
    ) -> Judged | Ended | None:  # fmt: skip
        """The same, by one way to read the numbers of its text."""
        if not one.budget.allows():
            return None
        problem, judge = replace(one.problem, source=source), self._judge.judge
        most = MOST_WORK
        if patient or (isinstance(one.own, OwnSizes) and is_whole(problem)):
            most = work_at_full(self.stages.config.limits.run_seconds)
        found: Judged | Ended | TooLong | BrokenReference
        try:
            found = await judge(one.oracle, problem, one.code, one.clock, most, at_full, one.own, doubted=doubted)
        except (Ended, TooLong, BrokenReference) as end:
            found = end
        one.budget.spend(found)
        if isinstance(found, Ended):
            return found if kernels_failed(found) or found.at_full else None
        return found if isinstance(found, Judged) else None

    async def guessed(self, one: Candidate) -> bool:
        """Whether what is smaller in a candidate's text at the first sizes are parts of sizes alone."""
        brief = await self.stages.brief(one.oracle, one.problem)
        return isinstance(one.own, OwnSizes) and one.own.guessed(dict(brief.counterparts))

    async def _muddled(self, one: Candidate, source: str) -> bool:
        """Whether a number of a candidate's text stands for several things at other sizes, such as 256 where one of two axes of
        256 is long and the other is not. It is wrong there, whatever it does at full shape."""
        if not isinstance(one.own, OwnSizes):
            return False
        first = await self.stages.brief(one.oracle, one.problem)
        try:
            here = await self.stages.brief(one.oracle, replace(one.problem, source=source))
        except BrokenReference:
            return False
        return one.own.muddled(dict(here.counterparts), dict(first.counterparts))

    async def begins(self, one: Candidate, source: str) -> bool:
        """Whether a forward that fails at the first sizes does not at others."""
        if not one.budget.allows():
            return False
        try:
            small, _ = (await self.stages.brief(one.oracle, replace(one.problem, source=source))).variants
            await self.stages.trace(one.code, (small,), one.clock, one.at_full.facts)
        except (Ended, BrokenReference):
            return False
        return True

    async def right_where_shorter(self, one: Candidate, sizes: Sizes, right: Sizes) -> bool:
        """Whether a candidate that is right at some sizes is so at the shorter of these and of others, so that what is wrong
        there comes with what is longer."""
        source = shorter_source(one.problem, sizes, right)
        if source is None:
            return True
        beside = await self.look(one, source, one.at_full)
        return isinstance(beside, Judged) and beside.evaluation.matches is True


def is_whole(problem: Problem) -> bool:
    """Whether a problem has a `SMALL` that is its full shape."""
    pairs = small_constants(problem.source, name=problem.name).values()
    return bool(pairs) and all(full == small for full, small in pairs)


def shorter_source(problem: Problem, sizes: Sizes, right: Sizes) -> str | None:
    """A problem's file at the shorter of some sizes and of others, `right`; None where these are the others."""
    shorter = shortest(sizes, right)
    return None if shorter == right else with_small(prompt_source(problem.source, name=problem.name), shorter)


def halvings_of(short: Iterable[Extent]) -> int:
    """How often sizes may be halved at which what is short should be long enough."""
    return max(0, min(map(_halvings, short)))


def _halvings(extent: Extent) -> int:
    if extent.enough > max(ENOUGH, extent.count // 2):
        return 0
    return extent.count.bit_length() - max(ENOUGH, extent.enough).bit_length()


def kernels_failed(end: Ended) -> bool:
    """Whether kernels ran and failed, of themselves and not for want of time."""
    return end.ran and end.status in (Status.OUT_OF_BOUNDS, Status.RUNTIME_ERROR)


def out_of_time(found: Judged | Ended) -> Undecided | None:
    """Undecided where time ran out while kernels ran: at other sizes they would take as long, or longer."""
    late = isinstance(found, Ended) and found.ran and found.status is Status.TIMEOUT
    return Undecided.TIME if late else None
