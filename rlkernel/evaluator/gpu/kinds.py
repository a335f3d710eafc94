"""The kinds of rounds that are judged on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.evaluator.judging.construction import BALANCED
from rlkernel.evaluator.judging.inputs.planting import PLANTED
from rlkernel.evaluator.judging.inputs.stress import STRESS_NOTES
from rlkernel.evaluator.messages.judgement import Balance, Stress


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of round."""

    other: bool = False
    """In the other of train and eval mode."""
    stress: Stress = Stress.NONE
    perturbed: bool = False
    """Constant parameters have other values."""
    balance: Balance | None = None
    """What leads operands out of half precision's range."""
    plants: bool = False
    """Numbers among forward's arguments are among its inputs, because the reference has nothing to do otherwise."""

    @property
    def note(self) -> str:
        """Stands behind a miss: what is special about the round."""
        notes = ["in the other of train and eval mode"] if self.other else []
        notes += STRESS_NOTES[self.stress]
        notes += [BALANCED] if self.balance is not None else []
        notes += [PLANTED] if self.plants else []
        notes += ["constant parameters at other values"] if self.perturbed else []
        return f" ({', '.join(notes)})" if notes else ""


USUAL = Kind()
"""The problem as it is written."""


def name_of(kind: Kind) -> str:
    """The name under which `Known.allowed` has what is allowed in such a round."""
    changed = "perturbed" if kind.perturbed else "plain"
    return "other" if kind.other else "range" if kind.balance else "stress" if kind.stress else changed
