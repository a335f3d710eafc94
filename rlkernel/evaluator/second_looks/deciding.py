"""A second look at a candidate without a GPU, at longer sizes than those at which it was compared first.

Eight kinds of candidates get one, and no others:

- one that is right, and has a loop, or an axis of its grid, that is longer at full shape than at the first sizes, and too short
  there to show how it goes on (`cpu.extents`), or a comparison that comes to something there that it hardly does at these, or a
  conversion that does not hold a whole number there. It must be right at longer sizes, too.
- one that is right, of a reference that tells places apart at full shape and not at the first sizes (`judging.sizes.distances`),
  such as a window: it must be right where that shows;
- one that is right, of a reference that adds up whole numbers which need more bits at full shape (`judging.sizes.widths`): it
  must be right where that shows;
- one that is right, of a reference that divides by a number of elements (`judging.sizes.counting`), or whose text has a size of
  those at which results were compared: it must be right where sizes have other values, too, since a number of its text may be
  right by chance;
- one that is right, and whose host code holds sizes against numbers of its own (`judging.sizes.host_limits`): it must be right
  where these are as small as the problem is, too;
- one that is right, and whose kernels are given a truth value at full shape that they are not given at the first sizes, such as
  `EVEN=True`, or take a side of a branch that they do not take there: it must be right where blocks are filled as they are at
  full shape, too;
- one that is right, and may write too little at full shape by what its prices sampled (`Judged.by_chance`): it must be right at
  the full shape itself, where that is little enough work;
- one that is not right, and may be made for its own sizes: its text has one of them as a number, or a number made of one, its
  constructor or its forward fails and can be traced at full shape, its kernels fail while they run, their masks leave elements
  out and leave none out at full shape, or it calls other kernels there. If it is right at longer sizes, it is right; where it
  has a loop that is too short there, also at sizes beyond these. Where its text has sizes as numbers, these are smaller in all
  its looks where the problem is (`judging.sizes.own_sizes`), and the first look is at the first sizes. Otherwise that is at
  sizes that fill blocks as the full ones do; where constructor or forward fails, it is at the first sizes, and what host code
  asserts is left out.

A look that takes too long, or that ends before kernels run, says nothing. Kernels that fail in a look count where no other look
shows what is too short: who is right where a grid has one program may race with itself where it has two.

The full shape decides, where it is little enough work to be among the looks: who is wrong there is excused by no other sizes, and
who is right there, and has one of its sizes as a number, is wrong at none.

What no look could decide stands as it was found first, and its detail says so (`judging.undecided`).

What is known of a candidate at full shape is not found again: a look at one that is right traces it at its own sizes alone,
compiles nothing and prices nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import anyio
import anyio.to_thread

from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.cpu_judge import AtFull, CpuJudge, Judged
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.sizes.counterparts import Counterparts
from rlkernel.evaluator.judging.sizes.host_limits import HostLimits, limited
from rlkernel.evaluator.judging.sizes.own_sizes import OwnSizes, named
from rlkernel.evaluator.judging.sizes.resizing import Sizes
from rlkernel.evaluator.judging.undecided import Undecided, told
from rlkernel.evaluator.judging.verdict import LIMITED
from rlkernel.evaluator.processes.child import Child
from rlkernel.evaluator.program.schema import Launch, Program
from rlkernel.evaluator.program.variant import Variant
from rlkernel.evaluator.second_looks.confirming import confirm, fill, hides, places, show, widths
from rlkernel.evaluator.second_looks.excusing import excuse
from rlkernel.evaluator.second_looks.looking import Candidate, Looks, is_whole, kernels_failed
from rlkernel.evaluator.second_looks.texts import has_small_sizes, repeated_sizes, without_asserts
from rlkernel.evaluator.second_looks.varying import vary
from rlkernel.evaluator.stages import Stages
from rlkernel.reference_text import small_of
from rlkernel.types import Evaluation, Problem, Status

TIMES_SMALLER = 2
"""How many times sizes are made smaller for a candidate that takes the interpreter too long."""
BEFORE_KERNELS = (Status.RUNTIME_ERROR, Status.CRASH, Status.INVALID)
"""What becomes of a candidate whose host code raises: in forward, or in its constructor and before."""


class SecondLooks:
    """Looks again, with a judge."""

    def __init__(self, stages: Stages, judge: CpuJudge) -> None:
        self._looks = Looks(stages, judge)

    async def after(
        self, oracle: Child, problem: Problem, code: str, clock: Clock, found: Judged | Ended, at_full: AtFull,
        whole: Problem | None = None,
    ) -> Evaluation | Undecided | None:  # fmt: skip
        """What longer sizes say in place of what was found first; None where that stands, Undecided where it stands because no
        look could tell more. `whole`: the problem as its file is, of which there may be sizes that are smaller still. Raises
        EvaluatorFailed."""
        one = Candidate(oracle, problem, code, clock, at_full, whole)
        says = await self._says(one, found)
        return Undecided.WORK if one.budget.denied and not isinstance(says, Evaluation) else says

    async def _says(self, one: Candidate, found: Judged | Ended) -> Evaluation | Undecided | None:
        """The same, whatever is left for looks."""
        if isinstance(found, Judged) and found.evaluation.correct:
            says = await self._beyond(one, found)
            wrong = isinstance(says, Evaluation) and says.status is not Status.IMPLAUSIBLE
            return None if wrong and await self._right_at_full(one) else says
        if isinstance(found, Ended) and found.status in BEFORE_KERNELS and not found.ran:
            if not await self._traced_at_full(one):
                return None
            bare = replace(one, code=without_asserts(one.code))
            own = await self._own(bare)
            if right := await self._first_right([bare, *own] if bare.code != one.code else own):
                return right
            where_it_runs = await excuse(self._looks, one, found, guarded=True)
            if isinstance(where_it_runs, Evaluation):
                return where_it_runs
            return await excuse(self._looks, own[0] if own else bare, found)
        if isinstance(found, Ended) and (found.at_full or not kernels_failed(found)):
            return None
        if isinstance(found, Judged) and found.evaluation.matches and found.same_work:
            return None
        own, code = await self._own(one), one.code
        if right := await self._first_right(own):
            return right
        if own and not (isinstance(found, Judged) and found.evaluation.matches and await self._looks.guessed(own[0])):
            one = own[0]
        if isinstance(found, Ended) or found.evaluation.matches:
            return await excuse(self._looks, one, found)
        repeated = await anyio.to_thread.run_sync(repeated_sizes, one.problem, code)  # it parses the whole text
        return await excuse(self._looks, one, found, repeated) if repeated or found.unfilled else None

    async def _beyond(self, one: Candidate, found: Judged) -> Evaluation | Undecided | None:
        """What is wrong at other sizes with a candidate that is right at the first ones: at longer ones where something is short,
        and at other values where it may be right by chance: the reference divides by a count, or its text has a size of these."""
        brief = await self._looks.stages.brief(one.oracle, one.problem)
        if not brief.distances and await self._limited(one, one.problem.source):
            return _implausible(found.evaluation, one.problem.source)
        if brief.counts or await anyio.to_thread.run_sync(has_small_sizes, one.problem, one.code, dict(brief.counterparts)):
            # first, because they take little and each tells: longer ones may take all that there is for looks
            other = await vary(self._looks, one, one.problem.source, found, excused=False)
            if isinstance(other, Evaluation):
                return other
        right: list[str] = []
        longer = await confirm(self._looks, one, found, right) if found.short else None
        if brief.distances and not isinstance(longer, Evaluation):
            shown = await show(self._looks, one, right, places)
            if isinstance(shown, (Evaluation, Undecided)):
                longer = shown
            elif await self._limited(one, shown, unseen=True):
                return _implausible(found.evaluation, shown)
        if brief.widths and not isinstance(longer, Evaluation):
            wide = await show(self._looks, one, right, widths)
            longer = wide if isinstance(wide, (Evaluation, Undecided)) else longer
        if found.switched and not isinstance(longer, Evaluation):
            longer = await fill(self._looks, one) or longer
        if found.by_chance and not isinstance(longer, Evaluation):
            return await self._wrong_at_full(one) or longer
        return longer

    async def _right_at_full(self, one: Candidate) -> bool:
        """Whether a candidate whose text has a size of the full shape as a number is right at that shape, where that is little
        enough work. Such a number may be how many of one size there are for each of another, as 128 of 1,024 are in each of 8
        groups: who has it is wrong where the two change apart, whatever it does at full shape."""
        if not await anyio.to_thread.run_sync(repeated_sizes, one.problem, one.code):
            return False
        _, found = await self._at_full(one)
        return isinstance(found, Judged) and found.same_work and found.evaluation.correct and not found.is_wrong

    async def _wrong_at_full(self, one: Candidate) -> Evaluation | None:
        """What is wrong at the full shape itself with a candidate that may write too little there, where that is little enough
        work."""
        sizes, found = await self._at_full(one)
        if isinstance(found, Judged) and found.is_wrong:
            return replace(found.evaluation, sizes=sizes)
        return None

    async def _at_full(self, one: Candidate) -> tuple[Sizes, Judged | Ended | None]:
        """The sizes of the full shape, and what a candidate does there; None where that is too much work."""
        filling = await self._looks.stages.lengthened(one.oracle, one.problem, None)
        for look in filling:
            if is_whole(replace(one.problem, source=look.source)):
                at_full = one.at_full.unpriced()
                return look.sizes, await self._looks.look(one, look.source, at_full, doubted=True, patient=True)
        return {}, None

    async def _limited(self, one: Candidate, source: str, *, unseen: bool = False) -> bool:
        """Whether a candidate does the work of the full shape where the numbers that its host code holds sizes against are as
        small as the problem is at the sizes of `source`, and is wrong there; and they decide at full shape, too. unseen: whether
        numbers that decide at these sizes as they are stay so, such as the 256 of a window of `min(keys, 256)` among 512 keys; so
        do those that may be blocks, where they are nothing else."""
        brief = await self._looks.stages.brief(one.oracle, replace(one.problem, source=source))
        known = dict(brief.counterparts)
        code, limits = await anyio.to_thread.run_sync(limited, one.code, known)
        if limits is None:
            return False
        small, full = brief.variants
        for name in limits.numbers:
            if name in limits.blocks:
                smaller = await self._gives(one, code, limits.halved(name, known), known, small)
                if smaller is None:
                    limits = limits.without(name)
                    continue
                limits = replace(limits, blocks={**limits.blocks, **smaller.blocks})
            if (unseen or name in limits.blocks) and await self._decides(one, code, limits.alone(name), small):
                limits = limits.without(name)
        again = await self._looks.look(replace(one, code=code, own=limits), source, one.at_full) if limits.numbers else None
        wrong = isinstance(again, Judged) and again.same_work and again.evaluation.matches is False
        return wrong and await self._decides(one, code, limits, full)

    async def _gives(
        self, one: Candidate, code: str, smaller: Sequence[HostLimits], known: Counterparts, there: Variant
    ) -> HostLimits | None:
        """The first of these with which a forward does something else by more than constants of kernels and grids; None where who
        only takes other blocks does not. The first, since what is made of blocks need not be right where it is less than one."""
        ways = [replace(there, constants={**there.constants, **some.at(known)}) for some in smaller]
        found = await self._programs(one, code, (*ways, there))
        steps = [[replace(s, configs=()) if isinstance(s, Launch) else s for s in program.forward] for program in found]
        return next((some for some, made in zip(smaller, steps, strict=False) if made != steps[-1]), None)

    async def _programs(self, one: Candidate, code: str, variants: Sequence[Variant]) -> list[Program]:
        """What a text does in these variants; nothing where it fails in one."""
        try:
            found, _ = await self._looks.stages.trace(code, variants, one.clock, one.at_full.facts)
        except Ended:
            return []
        return [traced.program for traced in found.traces]

    async def _decides(self, one: Candidate, code: str, limits: HostLimits, there: Variant) -> bool:
        """Whether a candidate does something else at some sizes where some of these numbers are beyond all. Where none does, as
        the 65,535 of `min(rows, 65535)` for 4,096 rows, nothing is hidden behind them."""
        if not (ways := [replace(there, constants={**there.constants, **some}) for some in limits.beyond()]):
            return True
        programs = await self._programs(one, code, (*ways, there))
        return not programs or any(program != programs[-1] for program in programs)

    async def _traced_at_full(self, one: Candidate) -> bool:
        """Whether a candidate whose forward fails at the first sizes does not at full shape."""
        _, full = (await self._looks.stages.brief(one.oracle, one.problem)).variants
        try:
            found, one.at_full.facts = await self._looks.stages.trace(one.code, (full,), one.clock, one.at_full.facts)
        except Ended:
            return False
        one.at_full.learn(full, found.traces[0], found.timed)
        return True

    async def _own(self, one: Candidate) -> list[Candidate]:
        """The candidate with the sizes that its text has as numbers smaller where the problem is, twice where some of them may
        stand for several things; none where it has no such numbers."""
        brief = await self._looks.stages.brief(one.oracle, one.problem)
        if not (known := dict(brief.counterparts)):
            return []
        kept = brief.variants[0].constants
        code, numbers = await anyio.to_thread.run_sync(named, one.code, known, kept)
        every = [OwnSizes(numbers, least, made) for made in (True, False) for least in (False, True)]
        told = [own.at(known) for own in every]
        ways = [own for place, own in enumerate(every) if told[place] and told[place] not in told[:place]]
        at_full = AtFull()
        return [replace(one, code=code, at_full=at_full, own=own) for own in ways]

    async def _first_right(self, ways: Iterable[Candidate]) -> Evaluation | None:
        """What the first of several ways to look at a candidate at the first sizes says, at which it is right."""
        for one in ways:
            if found := await self._at_first_sizes(one):
                return found
        return None

    async def _at_first_sizes(self, one: Candidate) -> Evaluation | None:
        """The verdict of a candidate that is right at the first sizes now that its host code asserts nothing, or that of longer
        sizes where it is wrong there; None of any other."""
        one = replace(one, at_full=one.at_full.unpriced())
        again = await self._looks.look(one, one.problem.source, one.at_full)
        if again is None and one.own is not None and one.whole is not None:  # programs of fewer elements take longer
            fits = await self._looks.stages.fitted(one.oracle, one.whole, None, TIMES_SMALLER)
            if fits.source != one.problem.source:
                one = replace(one, problem=replace(one.problem, source=fits.source))
                again = await self._looks.look(one, fits.source, one.at_full)
        if not isinstance(again, Judged) or not again.evaluation.correct or not again.same_work:
            return None
        right = replace(again.evaluation, sizes=small_of(one.problem.source))
        wrong = await confirm(self._looks, one, again) if again.short else None
        if isinstance(wrong, Evaluation):
            return wrong
        if await hides(self._looks, one, one.problem.source, places):
            shown = await show(self._looks, one, (), places)
            if isinstance(shown, Evaluation):
                return shown
            wrong = wrong or (shown if isinstance(shown, Undecided) else None)
        chance = await vary(self._looks, one, one.problem.source, again, excused=True)
        return (chance if isinstance(chance, Evaluation) else None) if chance else told(right, wrong)


def _implausible(found: Evaluation, source: str) -> Evaluation:
    """The verdict of a candidate of which a number in its host code hides what is wrong; `source`: at these sizes it shows."""
    return replace(found, status=Status.IMPLAUSIBLE, detail=LIMITED, sizes=small_of(source))
