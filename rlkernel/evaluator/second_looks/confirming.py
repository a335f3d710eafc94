"""Second looks at a candidate that is right at the first sizes: it must be right at longer ones, too."""

from __future__ import annotations

from dataclasses import replace

from rlkernel.evaluator.cpu_judge import Judged
from rlkernel.evaluator.judging.sizes.resizing import shortest, with_small
from rlkernel.evaluator.judging.undecided import Undecided
from rlkernel.evaluator.judging.verdict import failed
from rlkernel.evaluator.messages.oracle import Lighter, Longer
from rlkernel.evaluator.second_looks.looking import Candidate, Looks, halvings_of
from rlkernel.evaluator.stages import Ended
from rlkernel.reference_text import prompt_source, small_of
from rlkernel.types import Evaluation

MOST_CONFIRMING = 4
"""Looks at a candidate that is right."""


async def confirm(looks: Looks, one: Candidate, found: Judged) -> Evaluation | Undecided | None:
    """What is wrong at longer sizes with a candidate that is right at the first ones: at sizes that should be long enough,
    and where they are not, at the longest. Kernels that fail are wrong once no look is left. Undecided where something stays
    short."""
    short = found.short
    broken: Evaluation | None = None
    async for look in looks.longer(one, MOST_CONFIRMING, dict.fromkeys((halvings_of(short), 0))):
        again = await looks.look(one, look.source, one.at_full)
        if again is None and look.lighter is not None:
            look = _as_light(one, look, look.lighter)
            again = await looks.look(one, look.source, one.at_full)
        if isinstance(again, Ended) and broken is None and await _right_beside(looks, one, look):
            broken = replace(failed(again.status, again.detail, one.clock.now), sizes=look.sizes)
        if not isinstance(again, Judged) or not again.same_work:
            continue
        if again.evaluation.matches is False and await _right_beside(looks, one, look):
            return replace(again.evaluation, sizes=look.sizes)
        short &= again.short
        if not short:
            return None
    return broken or Undecided.LONGER


def _as_light(one: Candidate, look: Longer, lighter: Lighter) -> Longer:
    """A look that takes too long, with all that is not long in it smaller; beside it, what is long is as it was at first."""
    shorter = shortest(lighter.sizes, small_of(one.problem.source))
    return Longer(lighter.source, lighter.sizes, with_small(prompt_source(one.problem.source, name=one.problem.name), shorter))


async def _right_beside(looks: Looks, one: Candidate, look: Longer) -> bool:
    """Whether a candidate is right where only those sizes differ from the first ones that were made smaller for a look."""
    if look.beside is None:
        return True
    beside = await looks.look(one, look.beside, one.at_full)
    return isinstance(beside, Judged) and beside.evaluation.matches is True
