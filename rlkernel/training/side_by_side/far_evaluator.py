"""The evaluator of a trainer process, which is in the command that has started it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from rlkernel.errors import BrokenReference, EvaluatorEnded, EvaluatorFailed
from rlkernel.interfaces import CardEvaluator
from rlkernel.training.side_by_side.channel import GONE, Assignment, Candidate, Channel, GivenBack, Lent, Verdict, Wanted
from rlkernel.types import Evaluation, Problem


@dataclass
class _Question:
    """What waits for an answer."""

    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: Verdict | Lent | None = None
    """None once it is answered: the command is gone."""


class FarEvaluator(CardEvaluator):
    """A `CardEvaluator` that asks over a channel. Whoever reads the channel hands it the answers."""

    def __init__(self, channel: Channel, assignment: Assignment) -> None:
        self._channel = channel
        self._assignment = assignment
        self._waiting: dict[int, _Question] = {}
        self._numbers = itertools.count()
        self._waited: tuple[float, float] | None = None

    @property
    def shares(self) -> bool:
        return self._assignment.shares

    @property
    def waited_seconds(self) -> tuple[float, float] | None:
        """Seconds as of the last answer, of all runs that share the evaluator."""
        return self._waited

    @property
    def notices(self) -> tuple[str, ...]:
        """None: the command says them."""
        return ()

    def describe(self) -> dict[str, Any]:
        return dict(self._assignment.described)

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation:
        """The verdict on a candidate. Raises BrokenReference, EvaluatorFailed, and EvaluatorEnded when the command is gone."""
        number = next(self._numbers)
        answer = await self._ask(Candidate(number, problem, code))
        assert isinstance(answer, Verdict)
        if answer.evaluation is None:
            raise BrokenReference(answer.error) if answer.broken_reference else EvaluatorFailed(answer.error)
        return answer.evaluation

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[None]:
        if not self.shares:
            yield
            return
        number = next(self._numbers)
        try:
            await self._ask(Wanted(number))
            yield
        finally:
            with suppress(*GONE):  # nobody is left to take it
                await self._channel.send(GivenBack(number))

    async def _ask(self, question: Candidate | Wanted) -> Verdict | Lent:
        waiting = self._waiting[question.number] = _Question()
        try:
            with suppress(*GONE):
                await self._channel.send(question)
                await waiting.answered.wait()
        finally:
            del self._waiting[question.number]
        if waiting.answer is None:
            raise EvaluatorEnded("the command that judges for this run has ended")
        self._waited = waiting.answer.waited
        return waiting.answer

    def hear(self, answer: Verdict | Lent) -> None:
        """Hand an answer to who waits for it; nobody does where the question was cancelled."""
        if answer.number in self._waiting:
            self._waiting[answer.number].answer = answer
            self._waiting[answer.number].answered.set()

    def hear_end(self) -> None:
        """The command is gone: whoever waits is told."""
        for question in self._waiting.values():
            question.answered.set()
