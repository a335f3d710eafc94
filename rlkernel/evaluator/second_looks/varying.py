"""Looks at a candidate that may be right by chance at the sizes at which it is: each size that is not the full one must have
another value in a look at which it is right, too."""

from __future__ import annotations

from dataclasses import replace

from rlkernel.evaluator.cpu_judge import Judged
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.sizes.constants import counts_of
from rlkernel.evaluator.judging.sizes.resizing import Sizes, shortest
from rlkernel.evaluator.judging.undecided import Undecided
from rlkernel.evaluator.judging.verdict import failed
from rlkernel.evaluator.second_looks.looking import Candidate, Looks
from rlkernel.reference_text import prompt_source, small_of
from rlkernel.types import Evaluation

MOST_VARYING = 8
"""Looks at one candidate."""
MOST_WRONG = 2
"""Looks at which it is wrong, after which it is not looked at any more. One is enough where it is right at some sizes alone; who
needs no such excuse may have blocks that one look does not fill. Kernels that fail count where no size is smaller."""


async def vary(looks: Looks, one: Candidate, source: str, right: Judged, *, excused: bool) -> Evaluation | Undecided | None:
    """What is wrong where the sizes at which a candidate is right have other values; Undecided where no look was right at another
    value of one of them and too few wrong. source: the problem's file at these sizes, at which it is `right`: blocks that are not
    filled excuse nobody whose blocks were not filled there. excused: whether it is right there alone."""
    base, full = small_of(source), counts_of(prompt_source(source, name=one.problem.name))
    left = {name for name in base.keys() & full.keys() if base[name] != full[name]}
    wrong: list[Evaluation] = []
    seen = 0
    for look in await looks.stages.varied(one.oracle, replace(one.problem, source=source)) if left else ():
        varies = left & _other(base, look.sizes)
        if not varies:
            continue
        if seen == MOST_VARYING or len(wrong) == MOST_WRONG:
            break
        again = await looks.look(one, look.source, one.at_full)
        seen += 1
        if isinstance(again, Ended) and not excused and shortest(look.sizes, base) == base:
            wrong.append(replace(failed(again.status, again.detail, one.clock.now), sizes=look.sizes))
        if not isinstance(again, Judged) or not again.same_work:
            continue
        if again.evaluation.matches:
            left -= varies
        elif right.unfilled or not again.unfilled:
            wrong.append(replace(again.evaluation, sizes=look.sizes))
    if not left:
        return None
    return wrong[-1] if len(wrong) >= (1 if excused else MOST_WRONG) else Undecided.OWN


async def crowd(looks: Looks, one: Candidate, source: str, right: Judged) -> Evaluation | Undecided | None:
    """What is wrong with a candidate where the most reduced of the smaller sizes is as at full shape, too, or the next where that
    is too much work; Undecided where each is. Who is wrong elsewhere may be right where there are few of something, because what
    it does wrong is rare there. source: the problem's file at the sizes at which it is `right`."""
    open_still: Undecided | None = None
    for look in await looks.stages.varied(one.oracle, replace(one.problem, source=source), whole=True):
        again = await looks.look(one, look.source, one.at_full)
        if again is None:
            open_still = Undecided.LONGER
        elif isinstance(again, Judged) and again.same_work and (right.unfilled or not again.unfilled):
            if again.evaluation.matches is False:
                return replace(again.evaluation, sizes=look.sizes)
            return None
    return open_still


def _other(base: Sizes, sizes: Sizes) -> set[str]:
    """The names of sizes that have other values."""
    return {name for name in base.keys() | sizes.keys() if base.get(name) != sizes.get(name)}
