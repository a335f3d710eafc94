"""Second looks at a candidate that is right at the first sizes: it must be right at longer ones, too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from rlkernel.evaluator.cpu.extents import is_lost
from rlkernel.evaluator.cpu_judge import Judged
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.sizes.resizing import is_longer
from rlkernel.evaluator.judging.undecided import Undecided
from rlkernel.evaluator.judging.verdict import failed
from rlkernel.evaluator.messages.children import Extent
from rlkernel.evaluator.messages.oracle import Brief, Lighter, Longer
from rlkernel.evaluator.second_looks.looking import Candidate, Looks, halvings_of, shorter_source
from rlkernel.reference_text import small_of
from rlkernel.types import Evaluation, Status

MOST_CONFIRMING = 4
"""Looks at a candidate that is right."""
MOST_FILLING = 3
"""Looks at one of whose kernels something else is told at full shape."""


def places(brief: Brief) -> bool:
    """Whether sizes hide how the reference tells places apart."""
    return brief.distances


def widths(brief: Brief) -> bool:
    """Whether sizes hide how wide the reference's sums of whole numbers are."""
    return brief.widths


async def hides(looks: Looks, one: Candidate, source: str, hidden: Callable[[Brief], bool]) -> bool:
    """Whether the problem's file at some sizes hides what its full shape shows."""
    return hidden(await looks.stages.brief(one.oracle, replace(one.problem, source=source)))


async def show(
    looks: Looks, one: Candidate, right: Iterable[str], hidden: Callable[[Brief], bool]
) -> Evaluation | Undecided | str:  # fmt: skip
    """What is wrong with a candidate that is right at the first sizes where longer ones show what is `hidden` at these; the
    problem's file at such sizes where it is right. right: the file at longer sizes at which it is known to be. Undecided where
    there are no such sizes at which it could be judged."""
    for source in right:
        if not await hides(looks, one, source, hidden):
            return source
    for look in await looks.stages.lengthened(one.oracle, one.problem, heads_pay=True):
        if await hides(looks, one, look.source, hidden):
            continue
        look, again = await _look(looks, one, look)
        if not isinstance(again, Judged) or not again.same_work:
            continue
        if again.evaluation.matches and not again.is_wrong:
            return look.source
        if await _right_beside(looks, one, look):
            return replace(again.evaluation, sizes=look.sizes)
    return Undecided.LONGER


async def confirm(
    looks: Looks, one: Candidate, found: Judged, right: list[str] | None = None
) -> Evaluation | Undecided | None:  # fmt: skip
    """What is wrong at longer sizes with a candidate that is right at the first ones: at sizes that should be long enough, and
    where they are not, at the longest; where these take too long, with less beside what is long. Kernels that fail are wrong
    once no look is left, but those that leave their tensors where blocks are not filled, and are right where they are and
    nothing is shorter: at full shape addresses are followed anyway. Undecided where something stays short. right: gets the
    problem's file at each of the sizes at which it is right, too."""
    short, broken = set(found.short), list[Evaluation]()
    async for look, again in _in_turn(looks, one, short):
        if isinstance(again, Ended) and await _right_beside(looks, one, look):
            broken.append(replace(failed(again.status, again.detail, one.clock.now), sizes=look.sizes))
        if not isinstance(again, Judged) or not again.same_work:
            continue
        if again.is_wrong and await _right_beside(looks, one, look):
            return replace(again.evaluation, sizes=look.sizes)
        if right is not None:
            right.append(look.source)
        short &= again.short
        if not short:
            return None
    for failure in broken:
        if failure.status is not Status.OUT_OF_BOUNDS or not await _right_where_filled(looks, one, failure.sizes):
            return failure
    return Undecided.LONGER


async def _in_turn(
    looks: Looks, one: Candidate, short: AbstractSet[Extent]
) -> AsyncIterator[tuple[Longer, Judged | Ended | None]]:  # fmt: skip
    """Looks at longer sizes and what comes of them; where a conversion is still `short` of a number that it does not hold, also
    those again that were too much work."""
    late = list[Longer]()
    async for look in looks.longer(one, MOST_CONFIRMING, dict.fromkeys((halvings_of(short), 0))):
        look, again = await _look(looks, one, look)
        if again is None and one.budget.took_too_long:
            late.append(look)
        yield look, again
    for look in late:
        if any(is_lost(extent.place) for extent in short):
            yield look, await looks.look(one, look.source, one.at_full, patient=True)


async def fill(looks: Looks, one: Candidate) -> Evaluation | None:
    """What is wrong with a candidate that is right at the first sizes, and whose kernels are told otherwise at full shape, as by
    `EVEN=True`, or take another side of a branch, at sizes that fill blocks as the full ones do, and then at longer ones."""
    async for look in looks.longer(one, MOST_FILLING, (None, 0)):
        look, again = await _look(looks, one, look)
        if not isinstance(again, Judged) or not again.same_work:
            continue
        if again.is_wrong and await _right_beside(looks, one, look):
            return replace(again.evaluation, sizes=look.sizes)
        if not again.switched:
            return None
    return None


async def _right_where_filled(looks: Looks, one: Candidate, sizes: Mapping[str, Any]) -> bool:
    """Whether a candidate is right at sizes that fill blocks as the full ones do, and of which none is smaller than these: who
    fails on purpose where something is long would hide what is wrong there."""
    async for look in looks.longer(one, MOST_FILLING, (None,)):
        if is_longer(sizes, look.sizes):
            continue
        again = await looks.look(one, look.source, one.at_full)
        if isinstance(again, Judged) and again.same_work and not again.unfilled:
            return again.evaluation.matches is True and not again.is_wrong
    return False


async def _look(looks: Looks, one: Candidate, look: Longer) -> tuple[Longer, Judged | Ended | None]:
    """A look, or that with all that is not long in it smaller where it takes too long, and what comes of it."""
    again = await looks.look(one, look.source, one.at_full)
    if again is not None or look.lighter is None:
        return look, again
    light = _as_light(one, look, look.lighter)
    return light, await looks.look(one, light.source, one.at_full)


def _as_light(one: Candidate, look: Longer, lighter: Lighter) -> Longer:
    """A look that takes too long, with all that is not long in it smaller; beside it, what is long is as it was at first."""
    beside = shorter_source(one.problem, lighter.sizes, small_of(one.problem.source))
    return Longer(lighter.source, lighter.sizes, beside)


async def _right_beside(looks: Looks, one: Candidate, look: Longer) -> bool:
    """Whether a candidate is right where only those sizes differ from the first ones that were made smaller for a look."""
    if look.beside is None:
        return True
    beside = await looks.look(one, look.beside, one.at_full)
    return isinstance(beside, Judged) and beside.evaluation.matches is True
