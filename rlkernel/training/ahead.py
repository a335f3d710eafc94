"""What was sampled ahead of its training (`Run.staleness`), complete or not, and its file in a checkpoint.

The file holds plain JSON and names no class, so that it can be read wherever the classes stand. Floats are written with all of
their digits: the batches that are read equal those that were written.
"""

from __future__ import annotations

import functools
import json
from dataclasses import asdict, dataclass, field, is_dataclass
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from rlkernel.rollout import Course
from rlkernel.types import Group, Problem, Trajectory

FILE = "batches_ahead.json"
"""The file's name inside a checkpoint."""


@dataclass(frozen=True)
class BegunBatch:
    """The groups of a later step that in-flight refresh samples over several steps, as far as they have gone."""

    step: int
    problems: tuple[Problem, ...]
    courses: tuple[tuple[Course, ...], ...]
    """`courses[i][k]` is the k-th trajectory of `problems[i]`."""

    @staticmethod
    def of(step: int, problems: tuple[Problem, ...], rollouts: int) -> BegunBatch:
        """A batch of which nothing is sampled yet."""
        return BegunBatch(step, problems, ((Course(),) * rollouts,) * len(problems))

    @property
    def under_way(self) -> int:
        """The number of trajectories that have not ended."""
        return sum(not course.over for courses in self.courses for course in courses)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of a batch of which nothing is under way."""
        return tuple(
            Group(problem, tuple(Trajectory(problem, course.turns) for course in courses))
            for problem, courses in zip(self.problems, self.courses, strict=True)
        )


@dataclass
class Ahead:
    """What was sampled ahead of its training."""

    ready: list[tuple[Group, ...]] = field(default_factory=list)
    """The batches of the next steps that are complete, the next step's first: at most `Run.staleness` between steps."""
    begun: list[BegunBatch] = field(default_factory=list)
    """The batches of the steps after these that are not, in the order of their steps."""

    def write(self, checkpoint: Path) -> None:
        """Add what was sampled ahead to a checkpoint; no file where there is nothing."""
        if self.ready or self.begun:
            (checkpoint / FILE).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @staticmethod
    def read(checkpoint: Path | None) -> Ahead:
        """What a checkpoint holds; nothing where it has no file of it."""
        if checkpoint is None or not (checkpoint / FILE).exists():
            return Ahead()
        found = json.loads((checkpoint / FILE).read_text(encoding="utf-8"))
        ready = [_restored(tuple[Group, ...], groups) for groups in found["ready"]]
        return Ahead(ready, [_restored(BegunBatch, batch) for batch in found["begun"]])


_hints = functools.cache(get_type_hints)


def _restored(kind: Any, value: Any) -> Any:
    """The value of type `kind` that JSON shows as objects, arrays and texts. What a mapping holds stays as JSON shows it."""
    if get_origin(kind) is UnionType:  # of one type and None
        return None if value is None else _restored(get_args(kind)[0], value)
    if get_origin(kind) is tuple:
        return tuple(_restored(get_args(kind)[0], item) for item in value)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**{name: _restored(_hints(kind)[name], item) for name, item in value.items()})
    return kind(value) if isinstance(kind, type) and issubclass(kind, Enum) else value
