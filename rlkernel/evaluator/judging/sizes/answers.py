"""An oracle's answers about sizes: those at which a problem is judged, and longer ones."""

from __future__ import annotations

from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging.sizes.fitting import Unfit, fit_for_cpu, fit_for_gpu
from rlkernel.evaluator.judging.sizes.lengthening import filling, lengthened
from rlkernel.evaluator.judging.sizes.varying import varied
from rlkernel.evaluator.messages.endings import Broken
from rlkernel.evaluator.messages.oracle import About, Fit, Fits, Lengthen, Lengthened, Vary
from rlkernel.reference_text import small_of
from rlkernel.types import Problem


def fit(question: Fit) -> Fits | Broken:
    """The sizes at which a problem is judged."""
    about, memory = question.about, question.memory_bytes
    problem, profile = _problem(about), profile_of(about.profile)
    try:
        fitted = fit_for_cpu(problem, profile, question.smaller) if memory is None else fit_for_gpu(problem, profile, memory)
        if isinstance(fitted, Unfit):
            return Broken(fitted.reason)
        return Fits(fitted.problem.source, fitted.whole | (small_of(fitted.problem.source) if memory is None else {}))
    except (SyntaxError, ValueError):  # what is wrong with the file is told when it is loaded
        return Fits(about.source, {})


def lengthen(question: Lengthen) -> Lengthened:
    """The longer sizes of a problem that was judged at its first ones."""
    problem, profile = _problem(question.about), profile_of(question.about.profile)
    if question.halvings is None:
        return Lengthened(tuple(filling(problem, profile)))
    return Lengthened(tuple(lengthened(problem, profile, question.halvings, heads_pay=question.heads_pay)))


def vary(question: Vary) -> Lengthened:
    """The sizes of a problem at which those that it is right at have other values."""
    return Lengthened(tuple(varied(_problem(question.about), profile_of(question.about.profile), whole=question.whole)))


def _problem(about: About) -> Problem:
    return Problem(about.name, 0, "validation", about.source)
