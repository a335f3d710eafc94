"""What a run has sampled so far, problem by problem: all that the choice of the next problems may depend on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from rlkernel.types import Group, Problem


@dataclass(frozen=True, slots=True)
class Drawn:
    """One group that was sampled, whether it was trained or not."""

    problem: str
    step: int
    """The step it was sampled for, from 0."""
    solved: float | None
    """The share of its trajectories that have a correct turn; None while they are on their way."""


@dataclass(frozen=True, slots=True)
class History:
    """The groups in the order of their drawing. What became of a step's groups is added when all of them are complete, so that
    nobody's speed decides what is known when."""

    draws: tuple[Drawn, ...] = ()

    def with_groups(self, step: int, groups: tuple[Group, ...]) -> History:
        """The history after these groups."""
        return replace(self, draws=(*self.draws, *(Drawn(group.problem.name, step, solved(group)) for group in groups)))

    def with_drawn(self, step: int, problems: Sequence[Problem]) -> History:
        """The history after a step's problems were chosen, whose groups are sampled over several steps."""
        return replace(self, draws=(*self.draws, *(Drawn(problem.name, step, None) for problem in problems)))

    def with_solved(self, step: int, groups: Sequence[Group]) -> History:
        """The history after the groups of a step are complete that `with_drawn` has noted, in its order."""
        rates = iter([solved(group) for group in groups])
        return replace(self, draws=tuple(replace(d, solved=next(rates)) if d.step == step else d for d in self.draws))

    @property
    def counts(self) -> Counter[str]:
        """How often each problem was drawn."""
        return Counter(draw.problem for draw in self.draws)

    def rates(self, window: int) -> Mapping[str, float]:
        """The mean of `solved` over the last `window` complete draws of each problem; a problem without any has none."""
        found: dict[str, list[float]] = {}
        for draw in self.draws:
            if draw.solved is not None:
                found.setdefault(draw.problem, []).append(draw.solved)
        return {problem: sum(last := rates[-window:]) / len(last) for problem, rates in found.items()}

    def to_json(self) -> str:
        """The text that `from_json` reads, with all digits of its floats."""
        return json.dumps([asdict(draw) for draw in self.draws])

    @staticmethod
    def from_json(text: str) -> History:
        """The history that `to_json` has written."""
        return History(tuple(Drawn(**draw) for draw in json.loads(text)))


def solved(group: Group) -> float:
    """The share of a group's trajectories that have a correct turn."""
    return sum(any(turn.evaluation.correct for turn in t.turns) for t in group.trajectories) / len(group.trajectories)
