"""What a person is told of a problem beside a verdict on it: that it can be solved without the work, or that no card holds it."""

from __future__ import annotations

import math

from rlkernel.evaluator import wire
from rlkernel.evaluator.devices import DeviceProfile
from rlkernel.evaluator.messages.survey import Survey
from rlkernel.evaluator.program.variant import Variant


def degenerate(name: str, found: Survey) -> list[str]:
    """The line about a reference that constants or kernels that ignore their inputs could match; none for a sound one."""
    if not found.degenerate:
        return []
    return [f"{name}: {found.degenerate}; a verdict on such a reference says little, and a training set leaves it out"]


def too_large(name: str, full: Variant, profile: DeviceProfile) -> list[str]:
    """The line about arguments that the modelled card could not hold; none for those that fit."""
    specs = (*full.specs.init_inputs, *full.specs.inputs)
    taken = sum(math.prod(spec.shape) * wire.DTYPES[spec.dtype].itemsize for spec in specs)
    if taken <= profile.memory_bytes:
        return []
    most = f"the card ({profile.name}) has {profile.memory_bytes / 1e9:,.0f} GB"
    return [f"{name}: its arguments take {taken / 1e9:,.0f} GB at full shape, and {most}: make its sizes smaller"]
