"""Turns that somebody has kept, as conversations with what the evaluator found: the trajectories of a benchmark, or those that a
run has written down."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from envs.problems import load_suite
from envs.world.suite import world_problems
from rlkernel.benchmark.results import PROMPTS
from rlkernel.benchmark.trajectories import TURNS, TurnRow
from rlkernel.errors import UsageError
from rlkernel.reference_text import prompt_source
from rlkernel.runs.directory import TRANSCRIPTS
from rlkernel.runs.log import TEXT_LIMIT
from rlkernel.runs.texts import jsonl
from rlkernel.types import Evaluation


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn: what was answered, what came of it, and what was said about it."""

    answer: str
    evaluation: Evaluation
    feedback: str
    whole: bool
    """Whether the answer ended by itself, and is kept to its end."""


@dataclass(frozen=True, slots=True)
class Told:
    """A trajectory as its texts tell it."""

    problem: str
    prompt: str
    exchanges: tuple[Exchange, ...]
    shown: tuple[tuple[int, ...], ...]
    """For each turn, the earlier turns that the policy saw."""
    held_out: bool
    """Whether the problem is for validation, so that nothing of it may be trained."""
    place: str


def trajectories_of(directory: Path) -> Iterator[Told]:
    """The trajectories in the directory of a benchmark or of a run. Raises UsageError for another directory."""
    if (directory / TURNS).is_file():
        return _of_benchmark(directory)
    if (directory / TRANSCRIPTS).is_file():
        return _of_run(directory)
    raise UsageError(f"{directory}: neither a benchmark ({TURNS}) nor a run ({TRANSCRIPTS}); give such a directory")


def validates(prompt: str) -> bool:
    """Whether a prompt shows a validation problem of our suite or of the world, from whatever table it came."""
    return any(reference in prompt for reference in _held_out())


@cache
def _held_out() -> tuple[str, ...]:
    """The validation problems as prompts show them."""
    problems = (*load_suite(), *world_problems())
    return tuple(prompt_source(p.source, name=p.name).strip() for p in problems if p.split == "validation")


def _of_benchmark(directory: Path) -> Iterator[Told]:
    try:
        prompts: Mapping[str, str] = json.loads((directory / PROMPTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise UsageError(f"{directory} has no {PROMPTS}: give the benchmark's command again, which writes it") from None
    found: dict[tuple[str, int], dict[int, TurnRow]] = {}
    for data in jsonl(directory / TURNS):
        row = TurnRow.from_json(data)
        if row.answer is not None:
            found.setdefault((row.problem, row.sample), {})[row.turn] = row
    for (problem, _), rows in found.items():
        turns = [rows[number] for number in sorted(rows)]
        shown = tuple(turn.shown for turn in turns)
        prompt = prompts[problem]
        yield Told(problem, prompt, tuple(map(_turn, turns)), shown, validates(prompt), directory.name)


def _turn(row: TurnRow) -> Exchange:
    assert row.answer is not None and row.evaluation is not None
    return Exchange(row.answer.text, row.evaluation, row.feedback, row.answer.stop != "length")


def _of_run(directory: Path) -> Iterator[Told]:
    for row in jsonl(directory / TRANSCRIPTS):
        exchanges = tuple(_written(turn) for turn in row["turns"])
        shown = tuple(tuple(range(number)) for number in range(len(exchanges)))
        held_out = row["split"] != "train" or validates(row["prompt"])
        yield Told(row["problem"], row["prompt"], exchanges, shown, held_out, directory.name)


def _written(turn: Mapping[str, Any]) -> Exchange:
    texts = (turn["completion"], turn["feedback"])
    whole = turn["stop"] != "length" and all(len(text) < TEXT_LIMIT for text in texts)
    return Exchange(texts[0], Evaluation.from_json(turn["evaluation"]), texts[1], whole)
