"""A second look at a candidate without a GPU, at longer sizes than those at which it was compared first.

Two kinds of candidates get one, and no others:

- one that is right, and has a loop, or an axis of its grid, that is longer at full shape than at the first sizes, and too short
  there to show how it goes on (`cpu.extents`). It must be right at longer sizes, too.
- one that is not right, and may be made for its own sizes: its text has one of them as a number, or a number made of one, its
  forward fails and can be traced at full shape, its kernels fail while they run, their masks leave elements out and leave none
  out at full shape, or it calls other kernels there. If it is right at longer sizes, it is right; where it has a loop that is
  too short there, also at sizes beyond these. Where its text has sizes as numbers, these are smaller in all its looks where the
  problem is (`judging.sizes.own_sizes`), and the first look is at the first sizes. Otherwise that is at sizes that fill blocks as
  the full ones do; where forward fails, it is at the first sizes, and what forward asserts is left out.

A look that takes too long, or that ends before kernels run, says nothing. Kernels that fail in a look count where no other look
shows what is too short: who is right where a grid has one program may race with itself where it has two.

What is known of a candidate at full shape is not found again: a look at one that is right traces it at its own sizes alone,
compiles nothing and prices nothing.
"""

from __future__ import annotations

import ast
import math
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, replace
from operator import ge

import anyio
import anyio.to_thread

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.cpu_judge import AtFull, CpuJudge, Judged, TooLong
from rlkernel.evaluator.judging.sizes.own_sizes import OwnSizes, named
from rlkernel.evaluator.judging.sizes.resizing import Sizes, numbers_of
from rlkernel.evaluator.judging.verdict import failed
from rlkernel.evaluator.messages.children import Extent
from rlkernel.evaluator.messages.oracle import Longer
from rlkernel.evaluator.processes.fork_server import Child
from rlkernel.evaluator.stages import Clock, Ended, Stages
from rlkernel.reference_text import of_kernel, replace_spans, shrink, small_constants, small_of
from rlkernel.types import Evaluation, Problem, Status

MOST_WORK = 300_000.0
"""The work of all rounds of a candidate, see `cpu.pace`, above which sizes are made smaller: about 10 s of a core."""
TIMES_SMALLER = 2
"""How many times sizes are made smaller for a candidate that takes the interpreter too long."""
MOST_CONFIRMING = 4
"""Looks at a candidate that is right."""
MOST_FILLING = 4
"""Looks at one that is not, and of which nothing but its masks says that it may be made for its sizes: two with all sizes filled,
and two at longer ones, where blocks are larger than can be filled along every axis; none once it is wrong where they are."""
ENOUGH = 4
"""Turns that show how a loop goes on."""
MOST_EXCUSING = 6
"""Looks at a candidate that is not."""
EIGHTH = 3
"""Halvings of a size that is still far above the first one, where the full one may be too much work."""
ALIKE = 1e-3
"""How far from a number that is made of a size a number of a text may be that stands for it, relative: it is often rounded."""
LARGEST = 2**62
"""Above any size; a text may hold numbers that no float does."""
TELLING = 32
"""From which number on a size that a text repeats says that the text is made for it."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A candidate that may be looked at again."""

    oracle: Child
    problem: Problem
    """At the sizes at which results were compared first."""
    code: str
    clock: Clock
    at_full: AtFull
    whole: Problem | None = None
    """The problem as its file is."""
    own: OwnSizes | None = None
    """The numbers of its text that are smaller where the problem is."""


class SecondLooks:
    """Looks again, with a judge."""

    def __init__(self, stages: Stages, judge: CpuJudge) -> None:
        self._stages = stages
        self._judge = judge

    async def after(
        self, oracle: Child, problem: Problem, code: str, clock: Clock, found: Judged | Ended, at_full: AtFull,
        whole: Problem | None = None,
    ) -> Evaluation | None:  # fmt: skip
        """What longer sizes say in place of what was found first; None where that stands. `whole`: the problem as its file is, of
        which there may be sizes that are smaller still. Raises EvaluatorFailed."""
        one = _Candidate(oracle, problem, code, clock, at_full, whole)
        if isinstance(found, Judged) and found.evaluation.correct:
            return await self._confirm(one, found) if found.short else None
        if isinstance(found, Ended) and found.status in (Status.RUNTIME_ERROR, Status.CRASH) and not found.ran:
            if not await self._traced_at_full(one):
                return None
            bare = replace(one, code=without_asserts(one.code))
            own = await self._own(bare)
            right = await self._first_right([bare, *own] if bare.code != one.code else own)
            return right or await self._excuse(own[0] if own else bare, found)
        if isinstance(found, Ended) and (found.at_full or not _kernels_failed(found)):
            return None
        if isinstance(found, Judged) and found.evaluation.matches and found.same_work:
            return None
        own = await self._own(one)
        if right := await self._first_right(own):
            return right
        one = own[0] if own else one
        if isinstance(found, Ended) or found.evaluation.matches:
            return await self._excuse(one, found)
        repeated = await anyio.to_thread.run_sync(repeated_sizes, problem, code)  # it parses the whole text
        return await self._excuse(one, found, repeated) if repeated or found.unfilled else None

    async def _confirm(self, one: _Candidate, found: Judged) -> Evaluation | None:
        """What is wrong at longer sizes with a candidate that is right at the first ones: at sizes that should be long enough,
        and where they are not, at the longest. Kernels that fail are wrong once no look is left."""
        short = found.short
        broken: Evaluation | None = None
        async for look in self._longer(one, MOST_CONFIRMING, dict.fromkeys((_halvings(short), 0))):
            again = await self._look(one, look.source, one.at_full)
            if isinstance(again, Ended) and broken is None and await self._right_beside(one, look):
                broken = replace(failed(again.status, again.detail, one.clock.now), sizes=look.sizes)
            if not isinstance(again, Judged) or not again.same_work:
                continue
            if again.evaluation.matches is False and await self._right_beside(one, look):
                return replace(again.evaluation, sizes=look.sizes)
            short &= again.short
            if not short:
                return None
        return broken

    async def _right_beside(self, one: _Candidate, look: Longer) -> bool:
        """Whether a candidate is right where only those sizes differ from the first ones that were made smaller for a look."""
        if look.beside is None:
            return True
        beside = await self._look(one, look.beside, one.at_full)
        return isinstance(beside, Judged) and beside.evaluation.matches is True

    async def _traced_at_full(self, one: _Candidate) -> bool:
        """Whether a candidate whose forward fails at the first sizes does not at full shape."""
        _, full = (await self._stages.brief(one.oracle, one.problem)).variants
        try:
            found, one.at_full.facts = await self._stages.trace(one.code, (full,), one.clock, one.at_full.facts)
        except Ended:
            return False
        one.at_full.learn(full, found.traces[0], found.timed)
        return True

    async def _own(self, one: _Candidate) -> list[_Candidate]:
        """The candidate with the sizes that its text has as numbers smaller where the problem is, twice where some of them may
        stand for several things; none where it has no such numbers."""
        brief = await self._stages.brief(one.oracle, one.problem)
        if not (known := dict(brief.counterparts)):
            return []
        kept = brief.variants[0].constants
        code, numbers = await anyio.to_thread.run_sync(named, one.code, known, kept)
        ways = [OwnSizes(numbers, least) for least in (False, True)]
        ways = [own for own, told in zip(ways, [own.at(known) for own in ways], strict=True) if told]
        ways = ways[:1] if len(ways) == 2 and ways[0].at(known) == ways[1].at(known) else ways
        at_full = AtFull()
        return [replace(one, code=code, at_full=at_full, own=own) for own in ways]

    async def _first_right(self, ways: Iterable[_Candidate]) -> Evaluation | None:
        """What the first of several ways to look at a candidate at the first sizes says, at which it is right."""
        for one in ways:
            if found := await self._at_first_sizes(one):
                return found
        return None

    async def _at_first_sizes(self, one: _Candidate) -> Evaluation | None:
        """The verdict of a candidate that is right at the first sizes now that its host code asserts nothing, or that of longer
        sizes where it is wrong there; None of any other."""
        one = replace(one, at_full=one.at_full.unpriced())
        again = await self._look(one, one.problem.source, one.at_full)
        if again is None and one.own is not None and one.whole is not None:  # programs of fewer elements take longer
            fits = await self._stages.fitted(one.oracle, one.whole, None, TIMES_SMALLER)
            if fits.source != one.problem.source:
                one = replace(one, problem=replace(one.problem, source=fits.source))
                again = await self._look(one, fits.source, one.at_full)
        if not isinstance(again, Judged) or not again.evaluation.correct or not again.same_work:
            return None
        wrong = await self._confirm(one, again) if again.short else None
        return wrong or replace(again.evaluation, sizes=small_of(one.problem.source))

    async def _excuse(self, one: _Candidate, found: Judged | Ended, repeated: frozenset[int] | None = None) -> Evaluation | None:
        """The verdict at the first longer sizes at which a candidate is right; of one whose kernels did not run at the first
        sizes, else that where they run. Its figures come from there, so that each look prices the candidate by its own
        draws. repeated: the sizes of the full shape that its text repeats, where these and its blocks are all that may excuse it:
        a look at which none of them is as large, and its blocks excuse nothing, would take its time for nothing."""
        most = MOST_EXCUSING if repeated is None or repeated else MOST_FILLING
        blocks = repeated is None or (isinstance(found, Judged) and found.unfilled)
        # One that matches does other work, perhaps from far fewer rows on.
        right = isinstance(found, Judged) and found.evaluation.matches is True
        order = (None, EIGHTH, 0) if right else (None, 0, EIGHTH)
        ran: Evaluation | None = None
        async for look in self._longer(one, most, order):
            if not blocks and repeated is not None and repeated.isdisjoint(_numbers_in(look.sizes)):
                continue
            # Two rows may hide what was wrong in four, such as the one length that is shorter than the others.
            for lighter in (look, look.lighter if right else None):
                bare = one.at_full.unpriced()
                again = None if lighter is None else await self._look(one, lighter.source, bare, doubted=not right)
                if again is not None:
                    break
            if isinstance(again, Ended) and again.at_full:  # by another draw of programs than before
                return None
            if lighter is None or not isinstance(again, Judged):
                continue
            if again.evaluation.correct:
                wrong = await self._refute(one, lighter.sizes, again.short) if again.short else None
                return wrong or replace(again.evaluation, sizes=lighter.sizes)
            if repeated is not None and again.same_work and not again.unfilled:
                blocks = False  # it is wrong where they are filled
                if not repeated:
                    return None
            ran = ran or replace(again.evaluation, sizes=lighter.sizes)
        return ran if isinstance(found, Ended) else None

    async def _refute(self, one: _Candidate, sizes: Sizes, short: frozenset[Extent]) -> Evaluation | None:
        """What is wrong at sizes beyond these with a candidate that is right at them alone, and whose loops are `short` there.
        Where its blocks are not filled, it may be wrong."""
        looks = 0
        async for look in self._longer(one, MOST_EXCUSING + MOST_CONFIRMING, dict.fromkeys((None, _halvings(short), 0))):
            if look.sizes == sizes or not _reach(look.sizes, sizes):
                continue
            looks += 1
            again = await self._look(one, look.source, one.at_full)
            if isinstance(again, Ended) and again.status is Status.RUNTIME_ERROR:  # a race that one block alone has not
                return replace(failed(again.status, again.detail, one.clock.now), sizes=look.sizes)
            if isinstance(again, Judged) and again.same_work and not again.unfilled:
                if again.evaluation.matches is False:
                    return replace(again.evaluation, sizes=look.sizes)
                short &= again.short
            if not short or looks == MOST_CONFIRMING:
                return None
        return None

    async def _longer(self, one: _Candidate, most: int, halvings: Iterable[int | None]) -> AsyncIterator[Longer]:
        """The longer sizes for as many looks, those that are halved as often as the first of `halvings` says before others; those
        that fill blocks, where it says None. Each search takes the oracle some 50 ms per problem, so that it waits until the
        sizes before have not told enough."""
        count = 0
        for number in halvings:
            for look in await self._stages.lengthened(one.oracle, one.problem, number):
                if count == most:
                    return
                count += 1
                yield look

    async def _look(self, one: _Candidate, source: str, at_full: AtFull, *, doubted: bool = False) -> Judged | Ended | None:
        """What a candidate does at other sizes; Ended where its kernels fail while they run; None where that says nothing.
        doubted: whether it is likely wrong, see `CpuJudge.judge`."""
        try:
            problem = replace(one.problem, source=source)
            return await self._judge.judge(one.oracle, problem, one.code, one.clock, MOST_WORK, at_full, one.own, doubted=doubted)
        except Ended as end:
            return end if _kernels_failed(end) else None
        except (TooLong, BrokenReference):
            return None


def _halvings(short: Iterable[Extent]) -> int:
    """How often sizes may be halved at which what is short should be long enough."""
    return max(0, min(extent.count.bit_length() - max(ENOUGH, extent.enough).bit_length() for extent in short))


def _reach(sizes: Sizes, others: Sizes) -> bool:
    """Whether no size is smaller than the other of its name.

    >>> _reach({"M": 512, "image": (64, 64)}, {"M": 128, "image": (64, 32)}), _reach({"M": 512, "N": 16}, {"M": 128, "N": 32})
    (True, False)
    """
    pairs = [(numbers_of(value), numbers_of(sizes.get(name, 0))) for name, value in others.items()]
    return all(len(mine) == len(own) and all(map(ge, mine, own)) for own, mine in pairs)


def _kernels_failed(end: Ended) -> bool:
    """Whether kernels ran and failed, of themselves and not for want of time."""
    return end.ran and end.status in (Status.OUT_OF_BOUNDS, Status.RUNTIME_ERROR)


def without_asserts(code: str) -> str:
    """A candidate's text without the asserts of its host code; its lines keep their numbers.

    >>> without_asserts("def forward(x):\\n    assert x.shape == (\\n        4096, 4096)\\n    return x\\n")
    'def forward(x):\\n    pass\\n\\n    return x\\n'
    """
    found: list[tuple[ast.stmt, str]] = []

    def collect(node: ast.AST) -> None:
        if isinstance(node, ast.Assert):
            found.append((node, "pass" + "\n" * ((node.end_lineno or node.lineno) - node.lineno)))
        elif not (isinstance(node, ast.FunctionDef) and of_kernel(node)):
            for child in ast.iter_child_nodes(node):
                collect(child)

    try:
        collect(ast.parse(code))
        return replace_spans(code, found)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return code


def _numbers_in(sizes: Sizes) -> set[int]:
    return {number for value in sizes.values() for number in numbers_of(value)}


def repeated_sizes(problem: Problem, code: str) -> frozenset[int]:
    """The sizes of the full shape that a text has as numbers, other than in a constant that has the reference's name, or of which
    it has a number that is made: `0.125` for 64 columns."""
    constants = small_constants(problem.source, name=problem.name)
    sizes = {number for full, small in constants.values() if full != small for number in numbers_of(full) if number >= TELLING}
    try:
        tree = ast.parse(shrink(code, constants))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    constants_in = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    numbers = {value for value in constants_in if isinstance(value, (int, float)) and abs(value) < LARGEST}

    def told(size: int) -> bool:
        forms = (size, 1 / size, size**0.5, size**-0.5, size**-0.5 * math.log2(math.e))
        return any(math.isclose(number, form, rel_tol=ALIKE) for number in numbers for form in forms)

    return frozenset(filter(told, sizes))
