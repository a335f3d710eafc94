"""The conversations of a corpus in one file of JSON lines, so that a corpus that was stopped goes on, here or on another machine.

A line has the task, the number of the conversation, the prompt, and each answer with its feedback and the part of its verdict
that is read later: status, speedup, coverage and how time was taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envs.teacher.corpus import Conversation, Exchange
from envs.world.corpus import Key
from envs.world.task import Task
from experiments.world.judged import kept_rows
from rlkernel.types import Evaluation, Status


class CorpusFile:
    """The file, and the conversations in it by task and number."""

    def __init__(self, path: Path, tasks: Sequence[Task]) -> None:
        """Read what is there. tasks: those of the corpus; conversations about others are passed over."""
        self.path = path
        self.found: dict[Key, Conversation] = {}
        by_name = {task.name: task for task in tasks}
        for row in kept_rows(path):
            if row["task"] in by_name:
                self.found[row["task"], row["number"]] = _conversation(row, by_name[row["task"]])

    def add(self, key: Key, conversation: Conversation) -> None:
        """Append a conversation."""
        self.found[key] = conversation
        exchanges = [[e.answer, e.feedback, _verdict(e.evaluation)] for e in conversation.exchanges]
        row = {"task": key[0], "number": key[1], "prompt": conversation.prompt, "exchanges": exchanges}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _verdict(facts: Evaluation) -> dict[str, Any]:
    return {"status": str(facts.status), "speedup": facts.speedup, "coverage": facts.coverage, "timing": facts.timing}


def _conversation(row: dict[str, Any], task: Task) -> Conversation:
    exchanges = tuple(
        Exchange(answer, Evaluation(Status(facts.pop("status")), "", **facts), feedback)
        for answer, feedback, facts in row["exchanges"]
    )
    return Conversation(task.problem(), row["prompt"], exchanges)
