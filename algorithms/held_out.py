"""Problems that training never shows, so that what is learned on the others can be measured on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rlkernel.errors import UsageError
from rlkernel.history import History
from rlkernel.types import Problem
from rlkernel.uniform import EveryGroup, uniform_among


@dataclass(frozen=True)
class HeldOut(EveryGroup):
    """Draws no problem whose name contains one of the `parts`, and every other one equally often, as if there were no more.

    Source: ours. Example: `HeldOut(("/product_",))` keeps the family `product` of `envs/world` for validation.
    """

    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not all(isinstance(part, str) and part for part in self.parts):
            raise UsageError(f"HeldOut.parts is {self.parts!r}: give a tuple of parts of the names of problems")

    def __call__(
        self, problems: Sequence[Problem], history: History, count: int, seed: int, without: frozenset[int]
    ) -> tuple[int, ...]:
        """See `rlkernel.interfaces.Sampler`. Raises UsageError where parts are in no name, since nothing is held out then, and
        where fewer problems are left than a step has."""
        others = [index for index, problem in enumerate(problems) if not any(part in problem.name for part in self.parts)]
        if self.parts and len(others) == len(problems):
            raise UsageError(
                f"HeldOut.parts is {self.parts!r}: no problem's name contains any of these, so that nothing would be held out; "
                "take other parts or other problems, or leave this run out"
            )
        if not without and len(others) < count:
            raise UsageError(f"HeldOut.parts is {self.parts!r}: {len(others)} problems are left, and a step has {count}")
        return uniform_among(problems, others, history, count, seed, without)
