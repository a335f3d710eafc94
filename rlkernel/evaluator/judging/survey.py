"""What there is to know of a reference before anybody tries it: whether it runs and traces, its time, and whether it is sound."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.degenerate import degenerate, is_random
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.evaluator.judging.sizes.fitting import Unfit, fit_for_cpu
from rlkernel.evaluator.messages.oracle import About
from rlkernel.evaluator.messages.survey import Survey
from rlkernel.evaluator.program.normal_form import normal_form
from rlkernel.types import Problem

OWN_US, OWN_ELEMENTS = 50.0, 1 << 18
"""The modelled time, and the elements of all inputs, up to which values are looked at in the problem's own size. A CPU takes
about 2000 times as long, for a dozen forwards. Beyond, they are looked at in the size at which a CPU would judge the problem
(`judging.sizes.fitting`)."""
MOST_US, MOST_ELEMENTS = 250.0, 1 << 24
"""The same where no smaller size is found: several copies in float64 must fit into a child's memory. Beyond, nothing is looked
at."""


def survey(about: About) -> Survey:
    """Look at one reference, at its small size where it has one. A reference that cannot be used is a value here."""
    problem = Problem(about.name, 0, "train", about.source)
    try:
        found = prepare(about.source, about.name, PROFILES[about.profile], about.precision)
        ranks = [len(spec.shape) for spec in found.variants[1].specs.inputs]
        costs, form = found.costs, normal_form(found.program, ranks)
        facts = Survey("", costs.us, costs.ops, costs.unpriced, form)
        elements = sum(math.prod(spec.shape) for spec in found.variants[0].specs.inputs)
        own_us = costs.us if found.variants[0] == found.variants[1] else 0.0  # one with a SMALL has a short time there
        if own_us > OWN_US or elements > OWN_ELEMENTS:
            fitted = fit_for_cpu(problem, PROFILES[about.profile])
            if not isinstance(fitted, Unfit):
                problem = fitted.problem
            elif own_us > MOST_US or elements > MOST_ELEMENTS:
                return facts
        with torch.no_grad():
            why, random = degenerate(problem, allow_neutral=True), is_random(problem)
    except BrokenReference as error:
        return Survey(broken=str(error))
    return replace(facts, checked=True, random=random, degenerate=why or "")
