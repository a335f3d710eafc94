"""`Writer`: who writes answers from texts. What a benchmark needs of a model, whether its token ids are known or not.

A conversation is the prompt and the exchanges that are shown, each an earlier answer and the feedback that it got. `PolicyWriter`
makes a `Policy` one; `rlkernel.policy.endpoint` is one over HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rlkernel.interfaces import Policy
from rlkernel.types import StopReason


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer and what it took."""

    text: str
    stop: StopReason
    token_ids: tuple[int, ...] = ()
    """Where they are known: what a policy sampled is never tokenised again."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    """None where they were not told."""
    cost: float = 0.0
    """In the currency of the prices."""
    requests: int = 0
    """That were sent for it, those that failed included."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier answer, and what it was told."""

    answer: Answer
    feedback: str


class NoAnswer(Exception):
    """The writer could not be asked now: nothing is known about what it would have written. One line, without secrets."""


class Writer(Protocol):
    """May be asked for many answers at once."""

    async def write(self, prompt: str, shown: Sequence[Exchange], seed: int) -> Answer | None:
        """The next answer; None when the conversation leaves no room for one. Raises NoAnswer."""


@dataclass(frozen=True)
class PolicyWriter:
    """A `Policy` as a `Writer`, token by token as in `rlkernel.refine`."""

    policy: Policy

    async def write(self, prompt: str, shown: Sequence[Exchange], seed: int) -> Answer | None:
        """See `Writer`."""
        ids = tuple(self.policy.encode_prompt(prompt))
        for exchange in shown:
            truncated = exchange.answer.stop == "length"
            ids += exchange.answer.token_ids + tuple(self.policy.encode_feedback(exchange.feedback, truncated=truncated))
        completion = await self.policy.generate(ids, seed)
        if completion is None:
            return None
        return Answer(completion.text, completion.stop, completion.token_ids, len(ids), len(completion.token_ids))
