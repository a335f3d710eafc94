"""Second looks at a candidate that is not right at the first sizes, and may be made for its own: the first longer sizes at which
it is right excuse it, unless it is wrong beyond these."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from rlkernel.evaluator.cpu_judge import Judged
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.sizes.resizing import Sizes, is_longer, numbers_of
from rlkernel.evaluator.judging.undecided import Undecided, told
from rlkernel.evaluator.judging.verdict import failed
from rlkernel.evaluator.messages.children import Extent
from rlkernel.evaluator.messages.oracle import Longer
from rlkernel.evaluator.second_looks.confirming import MOST_CONFIRMING, hides, places
from rlkernel.evaluator.second_looks.looking import Candidate, Looks, halvings_of, is_whole
from rlkernel.evaluator.second_looks.varying import crowd, vary
from rlkernel.types import Evaluation, Status

MOST_FILLING = 4
"""Looks at one of which nothing but its masks says that it may be made for its sizes: two with all sizes filled, and two at
longer ones, where blocks are larger than can be filled along every axis; none once it is wrong where they are."""
MOST_EXCUSING = 6
"""Looks at any other."""
MOST_TRIED = 24
"""Sizes at which it is tried whether forward runs, where it does not at the first ones."""
EIGHTH = 3
"""Halvings of a size that is still far above the first one, where the full one may be too much work."""


async def excuse(
    looks: Looks, one: Candidate, found: Judged | Ended, repeated: frozenset[int] | None = None, *, guarded: bool = False
) -> Evaluation | Undecided | None:
    """The verdict at the first longer sizes at which a candidate is right; of one whose kernels did not end at the first
    sizes, else that where they do, unless they failed and only parts of sizes are smaller in its text there: the 2 of a grid
    may be no part, and what has failed without that is why it is wrong. Its figures come from there, so that each look prices
    the candidate by its own draws. repeated: the sizes of the full shape that its text repeats, where these and its blocks are
    all that may excuse it: a look at which none of them is as large, and its blocks excuse nothing, would take its time for
    nothing. Undecided where no look showed it wrong: with the work of the full shape, its blocks filled; or where its kernels
    fail and its text has no sizes that could be why. Where no look did, those that took too long are taken again, and may take
    longer. One that ends before its kernels run, as by an assertion, and fails at full
    shape, has that verdict. guarded: whether forward refuses sizes of itself, so that there are no looks at these."""
    most = MOST_EXCUSING if repeated is None or repeated else MOST_FILLING
    blocks = repeated is None or (isinstance(found, Judged) and found.unfilled)
    # One that matches does other work, perhaps from far fewer rows on.
    right = isinstance(found, Judged) and found.evaluation.matches is True
    order = (None, EIGHTH, 0) if right else (None, 0, EIGHTH)
    ran: Evaluation | None = None
    decided, elsewhere, late = False, False, list[Longer]()
    async for look, patient in _in_turn(looks, one, most, order, late, guarded):
        if patient and decided:
            break
        if not blocks and repeated is not None and repeated.isdisjoint(_numbers_in(look.sizes)):
            continue
        # Two rows may hide what was wrong in four, such as the one length that is shorter than the others.
        for lighter in (look, look.lighter if (right or guarded) and not patient else None):
            again = None
            if lighter is not None:
                again = await looks.look(one, lighter.source, one.at_full.unpriced(), doubted=not right, patient=patient)
            if again is not None:
                break
        if again is None and one.budget.took_too_long and not patient:
            late.append(look)
        if isinstance(again, Ended) and again.at_full:  # by another draw of programs than before, or behind what has failed
            ended_before = isinstance(found, Ended) and not found.ran
            return failed(again.status, again.detail, one.clock.now) if ended_before else None
        decided |= isinstance(again, Ended) and one.own is None and not repeated
        if lighter is None or not isinstance(again, Judged):
            continue
        if again.evaluation.correct:
            if await hides(looks, one, lighter.source, places):
                continue  # who leaves out a window is right among fewer keys than it has
            wrong = await _refute(looks, one, lighter.sizes, again.short) if again.short else None
            if isinstance(wrong, Evaluation):
                return wrong
            rare = await crowd(looks, one, lighter.source, again) if elsewhere else None
            if isinstance(rare, Evaluation):
                return rare
            chance = await vary(looks, one, lighter.source, again, excused=True)
            return chance or told(replace(again.evaluation, sizes=lighter.sizes), wrong or rare)
        if again.evaluation.matches is False and is_whole(replace(one.problem, source=lighter.source)):
            # whoever is wrong at the full shape is right elsewhere by chance
            return None if isinstance(found, Judged) else replace(again.evaluation, sizes=lighter.sizes)
        filled = again.same_work and not again.unfilled
        elsewhere |= filled
        decided |= filled
        if repeated is not None and filled:
            blocks = False  # it is wrong where they are filled
            if not repeated:
                return None
        ran = ran or replace(again.evaluation, sizes=lighter.sizes)
    open_still = None if decided else Undecided.OWN
    if ran is None or isinstance(found, Judged) or (found.ran and await looks.guessed(one)):
        return open_still
    return told(ran, open_still)


async def _in_turn(
    looks: Looks, one: Candidate, most: int, order: tuple[int | None, ...], late: list[Longer], guarded: bool
) -> AsyncIterator[tuple[Longer, bool]]:  # fmt: skip
    """The looks to take, and whether to bear more work: once there are no others, those that took too long, which are in `late`
    by then."""
    seen = 0
    async for look in looks.longer(one, MOST_TRIED if guarded else most, order):
        if guarded and (seen == most or not await looks.begins(one, look.source)):
            continue
        seen += 1
        yield look, False
    for look in late:
        yield look, True


async def _refute(looks: Looks, one: Candidate, sizes: Sizes, short: frozenset[Extent]) -> Evaluation | Undecided | None:
    """What is wrong at longer sizes with a candidate that is right at these, and whose loops are `short` here. Where its blocks
    are not filled, it may be wrong; and where other sizes are smaller than here, unless they alone leave it right.
    Undecided where something stays short."""
    seen = 0
    async for look in looks.longer(one, MOST_EXCUSING + MOST_CONFIRMING, dict.fromkeys((None, halvings_of(short), 0))):
        if not is_longer(look.sizes, sizes):
            continue
        seen += 1
        again = await looks.look(one, look.source, one.at_full)
        wrong: Evaluation | None = None
        if isinstance(again, Ended) and again.status is Status.RUNTIME_ERROR:  # a race that one block alone has not
            wrong = failed(again.status, again.detail, one.clock.now)
        elif isinstance(again, Judged) and again.same_work and not again.unfilled:
            if again.evaluation.matches:
                short &= again.short
            else:
                wrong = again.evaluation
        if wrong is not None and await looks.right_where_shorter(one, look.sizes, sizes):
            return replace(wrong, sizes=look.sizes)
        if not short:
            return None
        if seen == MOST_CONFIRMING:
            break
    return Undecided.LONGER


def _numbers_in(sizes: Sizes) -> set[int]:
    return {number for value in sizes.values() for number in numbers_of(value)}
