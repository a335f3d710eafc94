"""Groups without spread are sampled again (DAPO, arXiv 2503.14476, section 3.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from rlkernel.checks import check_number
from rlkernel.history import History
from rlkernel.interfaces import Sampler
from rlkernel.types import Group, Problem
from rlkernel.uniform import Uniform


@dataclass(frozen=True)
class DynamicSampling:
    """Keeps a group iff at some turn the rewards of its trajectories differ by more than `spread`; others are drawn in place of
    the rest.

    After `rounds` draws, groups without spread fill the batch: their advantages are 0. DAPO draws until the batch is full, and
    judges one turn; its accuracy strictly between 0 and 1 is `spread` 0 with a reward of 0 and 1.
    """

    inner: Sampler = field(default_factory=Uniform)
    """Who chooses the problems."""
    rounds: int = 4
    """Draws of a step, at most."""
    spread: float = 1e-6

    def __post_init__(self) -> None:
        check_number(self, "rounds", least=1, whole=True)
        check_number(self, "spread", least=0)

    def keeps(self, group: Group) -> bool:
        """Whether the group's rewards differ at some turn."""
        turns = zip_longest(*([turn.reward for turn in trajectory.turns] for trajectory in group.trajectories))
        found = [[reward for reward in of_turn if reward is not None] for of_turn in turns]
        return any(max(rewards) - min(rewards) > self.spread for rewards in found)

    def __call__(
        self, problems: Sequence[Problem], history: History, count: int, seed: int, without: frozenset[int]
    ) -> tuple[int, ...]:
        """See `rlkernel.interfaces.Sampler`."""
        return self.inner(problems, history, count, seed, without)
