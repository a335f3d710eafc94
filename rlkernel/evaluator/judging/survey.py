"""What there is to know of a reference before anybody tries it: whether it runs and traces, its time, and whether it is sound."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.degenerate import degenerate, is_random
from rlkernel.evaluator.judging.fitting import Unfit, fit_for_cpu
from rlkernel.evaluator.judging.oracle import prepare
from rlkernel.evaluator.messages.oracle import About
from rlkernel.evaluator.messages.survey import Survey
from rlkernel.evaluator.program.normal_form import normal_form
from rlkernel.types import Problem

CHECKED_US = 250.0
"""The modelled time up to which values are looked at in the problem's own size: a CPU takes about 2000 times as long, for a dozen
forwards. Beyond it, they are looked at in the size at which a CPU would judge the problem (`judging.fitting`)."""


CHECKED_ELEMENTS = 1 << 24
"""The same for the elements of all inputs: several copies in float64 must fit into a child's memory."""


def survey(about: About) -> Survey:
    """Look at one reference, at its small size where it has one. A reference that cannot be used is a value here."""
    problem = Problem(about.name, 0, "train", about.source)
    try:
        found = prepare(about.source, about.name, PROFILES[about.profile], about.precision)
        ranks = [len(spec.shape) for spec in found.variants[1].specs.inputs]
        costs, form = found.costs, normal_form(found.program, ranks)
        facts = Survey("", costs.us, costs.ops, costs.unpriced, form)
        elements = sum(math.prod(spec.shape) for spec in found.variants[0].specs.inputs)
        if (costs.us > CHECKED_US and found.variants[0] == found.variants[1]) or elements > CHECKED_ELEMENTS:
            fitted = fit_for_cpu(problem, PROFILES[about.profile])
            if isinstance(fitted, Unfit):
                return facts
            problem = fitted.problem
        with torch.no_grad():
            why, random = degenerate(problem, allow_neutral=True), is_random(problem)
    except BrokenReference as error:
        return Survey(broken=str(error))
    return replace(facts, checked=True, random=random, degenerate=why or "")
