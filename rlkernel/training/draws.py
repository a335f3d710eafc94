"""Which problems a step trains: asks the run's `Sampler`, and remembers what became of every group, in the checkpoint too."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from rlkernel.config import Run
from rlkernel.errors import UsageError
from rlkernel.history import History
from rlkernel.interfaces import Sampler
from rlkernel.returned import check_chosen
from rlkernel.types import Group, Problem

FILE = "drawn_problems.json"
"""The file's name inside a checkpoint."""
Sample = Callable[[Sequence[Problem], int], Awaitable[tuple[Group, ...]]]
"""Groups of the given problems; the number of the round, from 0, is part of their seeds."""


class Draws:
    """The training problems of a run, drawn step by step."""

    def __init__(self, problems: Sequence[Problem], sampler: Sampler, count: int, seed: int, checkpoint: Path | None) -> None:
        """count: groups of a step. checkpoint: where the run goes on. Raises UsageError for a step of more groups than there are
        problems."""
        if count > len(problems):
            raise UsageError(f"Run.prompts_per_step is {count}, but there are {len(problems)} training problems: lower it")
        self._problems = problems
        self._sampler = sampler
        self._count = count
        self._seed = seed
        stored = checkpoint / FILE if checkpoint is not None else None
        self.history = History.from_json(stored.read_text(encoding="utf-8")) if stored and stored.exists() else History()

    def write(self, checkpoint: Path) -> None:
        """Add what was drawn to a checkpoint."""
        (checkpoint / FILE).write_text(self.history.to_json(), encoding="utf-8")

    async def batch(self, step: int, sample: Sample) -> tuple[Group, ...]:
        """The groups of a step. Those that the sampler does not keep are drawn again, for at most its `rounds`; then the last of
        them fill the batch."""
        kept: list[Group] = []
        dropped: list[Group] = []
        drawn: frozenset[int] = frozenset()
        for number in range(self._sampler.rounds):
            wanted = min(self._count - len(kept), len(self._problems) - len(drawn))
            if wanted <= 0:
                break
            chosen = self._choose(wanted, drawn)
            if not chosen:
                break
            drawn |= frozenset(chosen)
            groups = await sample([self._problems[i] for i in chosen], number)
            self.history = self.history.with_groups(step, groups)
            for group in groups:
                (kept if self._sampler.keeps(group) else dropped).append(group)
        missing = self._count - len(kept)
        return (*kept, *dropped[len(dropped) - missing :])

    def begin(self, step: int) -> tuple[Problem, ...]:
        """The problems of a step whose groups are sampled over several steps. The sampler must have one round."""
        chosen = self._choose(self._count, frozenset())
        problems = tuple(self._problems[i] for i in chosen)
        self.history = self.history.with_drawn(step, problems)
        return problems

    def _choose(self, count: int, without: frozenset[int]) -> tuple[int, ...]:
        chosen = self._sampler(self._problems, self.history, count, self._seed, without)
        check_chosen(self._sampler, chosen, len(self._problems), count, without)
        return chosen

    def complete(self, step: int, groups: Sequence[Group]) -> None:
        """Note what became of the groups that `begin` has begun."""
        self.history = self.history.with_solved(step, groups)


def check(run: Run) -> None:
    """Raise UsageError for a run whose sampler cannot draw a step of its training problems."""
    problems = [problem for problem in run.problems if problem.split == "train"]
    try:
        Draws(problems, run.sampler, run.prompts_per_step, run.seed, None).begin(0)
    except UsageError as error:
        raise UsageError(f"run {run.name!r}: {error}") from error
