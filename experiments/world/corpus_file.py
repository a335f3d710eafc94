"""The conversations of a corpus in one file of JSON lines, so that a corpus that was stopped goes on, here or on another machine.

A line has the task, the number of the conversation, the prompt, and each answer with its feedback and the part of its verdict
that is read later: status, speedup, coverage and how time was taken.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from envs.teacher.corpus import Conversation, Exchange
from envs.world.corpus import Key
from envs.world.suite import of_row, to_row
from envs.world.task import Task
from experiments.world.judged import kept_rows
from rlkernel.errors import UsageError
from rlkernel.types import Evaluation, Status, Timing


class CorpusFile:
    """The file, and the conversations in it by task and number."""

    def __init__(self, path: Path) -> None:
        """Read what is there."""
        self.path = path
        self.found: dict[Key, Conversation] = {}
        for row in kept_rows(path):
            conversation = _conversation(row)
            self.found[conversation.problem.name, row["number"]] = conversation

    def check_timing(self, timing: Timing) -> None:
        """Raise UsageError where the file has conversations that were judged by the other way of timing: it may not go on."""
        verdicts = (exchange.evaluation.timing for conversation in self.found.values() for exchange in conversation.exchanges)
        if others := set(verdicts) - {None, timing}:
            raise UsageError(
                f"{self.path} has conversations of {others.pop()} time, and here time is {timing}: go on where it was begun, or "
                "move the file away"
            )

    def add(self, task: Task, number: int, conversation: Conversation) -> None:
        """Append a conversation about a task."""
        self.found[task.name, number] = conversation
        exchanges = [[e.answer, e.feedback, _verdict(e.evaluation)] for e in conversation.exchanges]
        row = {"task": to_row(task), "number": number, "prompt": conversation.prompt, "exchanges": exchanges}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _verdict(facts: Evaluation) -> dict[str, Any]:
    return {"status": str(facts.status), "speedup": facts.speedup, "coverage": facts.coverage, "timing": facts.timing}


def _conversation(row: dict[str, Any]) -> Conversation:
    exchanges = tuple(
        Exchange(answer, Evaluation(Status(facts.pop("status")), "", **facts), feedback)
        for answer, feedback, facts in row["exchanges"]
    )
    return Conversation(of_row(row["task"]).problem(), row["prompt"], exchanges)
