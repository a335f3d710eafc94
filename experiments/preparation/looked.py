"""Looks at every reference once, in parallel, and keeps what was found in a file of JSON lines, so that a kill costs nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import anyio
import torch

from rlkernel.config import to_json
from rlkernel.evaluator.config import EvaluatorConfig
from rlkernel.evaluator.messages.survey import Survey
from rlkernel.evaluator.pool import open_pool
from rlkernel.evaluator.version import verdict_version
from rlkernel.sources.normal_form import normal_form
from rlkernel.types import OpFact, Problem

WAITING = 2
"""References that wait per lane, so that no lane is idle."""


@dataclass(frozen=True)
class Looked:
    """A problem with what is known of it."""

    problem: Problem
    survey: Survey
    text_form: str
    """`rlkernel.sources.normal_form` of its text."""

    @property
    def forms(self) -> tuple[str, ...]:
        """What it has in common with the same task in other clothes: the form of its text, and that of its work."""
        return tuple(form for form in (self.text_form, self.survey.form) if form)


class Ledger:
    """The file of what was found. What another version of the evaluator or of torch has found is not used."""

    def __init__(self, path: Path, config: EvaluatorConfig) -> None:
        self._path = path
        self._setting = json.dumps([to_json(config), verdict_version(), torch.__version__], sort_keys=True)
        self._known: dict[str, Survey] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
            with suppress(ValueError, KeyError, TypeError):  # a line torn by a kill is found again
                row = json.loads(line)
                self._known[row["key"]] = _survey(row["survey"])

    def key(self, problem: Problem) -> str:
        """What names a problem's line: its text, and what judges."""
        return hashlib.sha256((self._setting + problem.source).encode()).hexdigest()[:32]

    def get(self, problem: Problem) -> Survey | None:
        return self._known.get(self.key(problem))

    def add(self, problem: Problem, survey: Survey) -> None:
        """Keep what was found, in one write of a whole line."""
        key = self.key(problem)
        self._known[key] = survey
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps({"key": key, "survey": asdict(survey)}).encode() + b"\n")


def _survey(data: dict[str, Any]) -> Survey:
    return Survey(**{**data, "ops": tuple(OpFact(**op) for op in data["ops"]), "unpriced": tuple(data["unpriced"])})


async def look_at(
    problems: Sequence[Problem], ledger: Ledger, config: EvaluatorConfig, jobs: int, on_done: Callable[[Survey], None]
) -> None:
    """Survey what the ledger lacks; equal texts once. on_done is called for each problem, those of the ledger first."""
    todo: dict[str, list[Problem]] = {}
    for problem in problems:
        if (known := ledger.get(problem)) is not None:
            on_done(known)
        else:
            todo.setdefault(ledger.key(problem), []).append(problem)
    if not todo:
        return
    waiting = iter(todo.values())
    async with open_pool(device="cpu", jobs=jobs, config=config) as pool, anyio.create_task_group() as tasks:

        async def worker() -> None:
            for same in waiting:  # shared by the workers: each takes the next
                found = await pool.survey(same[0])
                ledger.add(same[0], found)
                for _ in same:
                    on_done(found)

        for _ in range(WAITING * pool.jobs):
            tasks.start_soon(worker)


def with_forms(problems: Iterable[Problem], ledger: Ledger) -> list[Looked]:
    """The problems with what the ledger knows of them, in their order."""
    found = []
    for problem in problems:
        survey = ledger.get(problem)
        assert survey is not None
        try:
            text_form = normal_form(problem.source)
        except ValueError:  # `Model` is no class of the file, e.g. an assignment
            text_form = ""
        found.append(Looked(problem, survey, text_form))
    return found
