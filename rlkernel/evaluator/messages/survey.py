"""Between the pool and the child that looks at one reference before anybody tries it: SurveyRequest -> Survey."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.evaluator.messages.oracle import About
from rlkernel.types import OpFact


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """Pool to child: what is there to know of this reference?"""

    about: About


@dataclass(frozen=True, slots=True)
class Survey:
    """Child to pool: what is known of a reference. Times in microseconds of device time, modelled."""

    broken: str = ""
    """Why the reference cannot be used, in one line; the rest says nothing then."""
    reference_us: float = 0.0
    ops: tuple[OpFact, ...] = ()
    """The reference's steps, the costliest first."""
    unpriced: tuple[str, ...] = ()
    """Operators that the model of time does not know: then the time is a lower bound."""
    form: str = ""
    """`program.normal_form` of the traced reference."""
    checked: bool = False
    """Whether values were looked at; a reference that no size makes small enough for a CPU is traced alone."""
    random: bool = False
    """Whether two calls on the same inputs differ, as dropout's do."""
    degenerate: str = ""
    """Why the problem can be solved without doing the work (`judging.degenerate`); empty where it cannot."""
