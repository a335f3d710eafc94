"""The kinds of rounds that are judged on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

from rlkernel.evaluator.judging.construction import BALANCED
from rlkernel.evaluator.judging.inputs.planting import PLANTED
from rlkernel.evaluator.judging.inputs.shown import note_of
from rlkernel.evaluator.judging.inputs.stress import ALWAYS_SAME, APART, OF_ONE_VALUE, OTHER_PARAMETERS, STRESS_NOTES
from rlkernel.evaluator.judging.references.outliers import NOTE as OUTLIERS
from rlkernel.evaluator.messages.judgement import NOWHERE, Balance, Places, Planting, Stress


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
    places: Places = NOWHERE
    """What is done to single inputs under stress."""
    shown: Planting | None = None
    """What is done to the inputs of a round of its own, to show what no draw does."""
    outliers: bool = False
    """A few weights are far larger than the others."""
    mild: bool = False
    """Inputs are as large as they are drawn, because larger ones hide something."""

    @property
    def note(self) -> str:
        """Stands behind a miss: what is special about the round."""
        notes = ["in the other of train and eval mode"] if self.other else []
        notes += STRESS_NOTES[self.stress]
        notes += [BALANCED] if self.balance is not None else []
        notes += [PLANTED] if self.plants else []
        notes += [OF_ONE_VALUE] if self.places.holed else []
        notes += [ALWAYS_SAME] if self.places.turned or self.places.moved else []
        notes += [APART] if self.places.apart else []
        notes += [] if self.shown is None else [note_of(self.shown)]
        notes += [OUTLIERS] if self.outliers else []
        notes += [OTHER_PARAMETERS] if self.perturbed else []
        return f" ({', '.join(notes)})" if notes else ""


USUAL = Kind()
"""The problem as it is written."""


def at_usual_inputs(stress: Stress, places: Places) -> Kind:
    """The round at other constants and inputs that are as large as they are drawn. `stress`: NONE, or VARIED where inputs that
    never vary do, at these places."""
    return Kind(stress=stress, perturbed=True, places=NOWHERE if stress is Stress.NONE else places, mild=True)


def name_of(kind: Kind) -> str:
    """The name under which `Known.allowed` has what is allowed in such a round."""
    if kind.shown is not None or kind.outliers or kind.mild:
        return "outliers" if kind.outliers else f"mild {kind.stress}".strip() if kind.mild else str(kind.shown)
    changed = "perturbed" if kind.perturbed else "plain"
    return "other" if kind.other else "range" if kind.balance else "stress" if kind.stress else changed
