"""Problems that training never shows, so that what is learned on the others can be measured on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rlkernel.errors import UsageError
from rlkernel.history import History
from rlkernel.interfaces import Sampler
from rlkernel.types import Group, Problem
from rlkernel.uniform import Uniform


@dataclass(frozen=True)
class HeldOut:
    """Draws no problem whose name contains one of the `parts`; of the others `inner` draws, as if there were no more.

    Source: ours. Example: `HeldOut(("/product_",))` keeps the family `product` of `envs/world` for validation.
    """

    parts: tuple[str, ...] = ()
    inner: Sampler = field(default_factory=Uniform)
    """Who chooses among the others."""

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not all(isinstance(part, str) and part for part in self.parts):
            raise UsageError(f"HeldOut.parts is {self.parts!r}: give a tuple of parts of the names of problems")

    @property
    def rounds(self) -> int:
        """How often a step may draw at most."""
        return self.inner.rounds

    def keeps(self, group: Group) -> bool:
        """Whether `inner` keeps the group."""
        return self.inner.keeps(group)

    def __call__(
        self, problems: Sequence[Problem], history: History, count: int, seed: int, without: frozenset[int]
    ) -> tuple[int, ...]:
        """See `rlkernel.interfaces.Sampler`. Raises UsageError where too few problems are left."""
        others = [index for index, problem in enumerate(problems) if not any(part in problem.name for part in self.parts)]
        if len(set(others) - without) < count:
            raise UsageError(f"HeldOut.parts is {self.parts!r}: it leaves {len(others)} problems, which are too few for a step")
        places = frozenset(place for place, index in enumerate(others) if index in without)
        found = self.inner([problems[index] for index in others], history, count, seed, places)
        return tuple(others[place] for place in found)
