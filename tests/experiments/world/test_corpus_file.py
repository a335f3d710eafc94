"""A corpus that was stopped goes on from its file, and is the one that was made at once."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from envs.teacher.corpus import Conversation
from experiments.world.corpus_file import CorpusFile
from experiments.world.source import World
from rlkernel.errors import UsageError
from rlkernel.types import Evaluation
from tests.envs.world.test_corpus import ByText

WORLD = World(("chain", "row"), extra=3, conversations=4, few=2)


class Gone(Exception):
    """The machine was taken away."""


class Counted(ByText):
    """Counts what it judges, and gives up after `last` verdicts, as a machine that is taken away."""

    jobs = 1

    def __init__(self, last: float = math.inf) -> None:
        self.judged, self.last = 0, last

    async def evaluate(self, problem: Any, code: str | None) -> Evaluation:
        self.judged += 1
        if self.judged > self.last:
            raise Gone
        return await super().evaluate(problem, code)


def made(file: CorpusFile, pool: Counted, until: float = math.inf) -> tuple[Conversation, ...]:
    anyio.run(lambda: WORLD.corpus(0, pool, file, until))  # type: ignore[arg-type]
    return tuple(file.found[key] for key in sorted(file.found))


def test_a_corpus_goes_on_from_its_file_on_another_machine(tmp_path: Path) -> None:
    assert len(WORLD.tasks(0)) == 7 and WORLD.total() == 28
    whole_pool = Counted()
    whole = made(CorpusFile(tmp_path / "whole.jsonl"), whole_pool)

    first = Counted(last=60)
    path = tmp_path / "here" / "corpus.jsonl"
    with pytest.raises(BaseExceptionGroup, match="unhandled") as raised:
        made(CorpusFile(path), first)
    assert raised.value.subgroup(Gone) is not None
    there = tmp_path / "there.jsonl"
    there.write_text(path.read_text() + '{"task": "torn')
    file = CorpusFile(there)
    done = sum(len(conversation.exchanges) for conversation in file.found.values())
    assert 0 < len(file.found) < 28

    second = Counted()
    again = made(file, second)
    assert second.judged == whole_pool.judged - done
    assert [c.prompt for c in again] == [c.prompt for c in whole]
    assert [[e.answer for e in c.exchanges] for c in again] == [[e.answer for e in c.exchanges] for c in whole]
    read = CorpusFile(there).found.values()
    verdicts = lambda c: [(e.feedback, e.evaluation.status, e.evaluation.coverage) for e in c.exchanges]  # noqa: E731
    assert sorted(map(verdicts, read)) == sorted(map(verdicts, whole))


def test_none_is_begun_after_the_time_limit_and_another_corpus_has_another_file(tmp_path: Path) -> None:
    pool, file = Counted(), CorpusFile(tmp_path / "corpus.jsonl")
    anyio.run(lambda: WORLD.corpus(0, pool, file, -1.0))  # type: ignore[arg-type]
    assert pool.judged == 0 and not file.found
    assert WORLD.label(0) == World(("chain", "row"), 3, 4, few=2).label(0)
    others = {WORLD.label(1), replace(WORLD, extra=4).label(0), replace(WORLD, device="cpu").label(0)}
    assert len(others | {WORLD.label(0)}) == 4


class Modelled(Counted):
    """Says of its verdicts that their times are modelled."""

    async def evaluate(self, problem: Any, code: str | None) -> Evaluation:
        return replace(await super().evaluate(problem, code), timing="modelled")


def test_modelled_and_measured_time_do_not_meet_in_a_file(tmp_path: Path) -> None:
    file = CorpusFile(tmp_path / "corpus.jsonl")
    file.check_timing("measured")
    made(file, Modelled())
    again = CorpusFile(file.path)
    again.check_timing("modelled")
    with pytest.raises(
        UsageError, match="has conversations of modelled time, and here time is measured: go on where it was begun"
    ):
        again.check_timing("measured")
