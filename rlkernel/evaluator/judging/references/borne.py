"""Which of a reference's constant parameters can get other values, where it does not bear that of all of them.

Example: a root is taken of one zero, which is to stay zero; a scale of ones beside it gets other values nevertheless. Otherwise
whoever leaves the scale out would be right. Source: ours.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from rlkernel.evaluator.judging.references.plan import SeededReference

MOST_TRIED = 24
"""Sets of constants that are tried."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """A reference of which some more parameters keep the values that they are made with."""

    reference: SeededReference
    kept: tuple[str, ...]
    """Their names."""

    @property
    def fixed(self) -> tuple[str, ...]:
        return (*self.reference.fixed, *map(glob.escape, self.kept))

    def model(self, seed: int) -> nn.Module:
        return self.reference.model(seed)

    def inputs(self, seed: int) -> list[Any]:
        return self.reference.inputs(seed)


def not_borne(names: Sequence[str], bears: Callable[[tuple[str, ...]], bool]) -> tuple[str, ...]:
    """Those of the `names` that must stay as they are. `bears`: whether all of some names can be changed while the others stay.
    What `MOST_TRIED` sets do not tell stays, too.

    >>> not_borne(["scale", "edge", "shift"], lambda changed: "edge" not in changed)
    ('edge',)
    """
    changed: tuple[str, ...] = ()
    open_, tried = [tuple(names)], 0
    while open_:
        part = open_.pop()
        whole = not changed and len(part) == len(names)  # what has brought the question up
        if not whole and tried < MOST_TRIED:
            tried += 1
            if bears((*changed, *part)):
                changed += part
                continue
        if len(part) > 1 and tried < MOST_TRIED:
            half = len(part) // 2
            open_ += [part[half:], part[:half]]
    return tuple(name for name in names if name not in changed)
