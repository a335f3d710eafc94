"""The `Writer` of answers: what a benchmark needs of a model, whether its token ids are known or not.

A conversation is the prompt and the exchanges that are shown, each an earlier answer and the feedback that it got. `PolicyWriter`
turns a `Policy` into a writer; `rlkernel.policy.endpoint` is a writer over HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rlkernel.interfaces import Policy
from rlkernel.types import StopReason


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a writer, and what it cost."""

    text: str
    stop: StopReason
    token_ids: tuple[int, ...] = ()
    """The sampled tokens, empty where they are not known. What a policy sampled is never tokenised again."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    """The tokens of the answer; None, like `prompt_tokens`, where an endpoint did not tell them."""
    cost: float = 0.0
    """The price of the answer, in the currency of the prices that were given."""
    requests: int = 0
    """The requests that were sent for the answer, failed ones included."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier answer, and the feedback that it got."""

    answer: Answer
    feedback: str


class NoAnswer(Exception):
    """Raised when the writer could not be asked: nothing is known about what it would have written. The message is one line, and
    holds no secrets."""


class Writer(Protocol):
    """What writes answers. It may be asked for many answers at once."""

    async def write(self, prompt: str, shown: Sequence[Exchange], seed: int) -> Answer | None:
        """The next answer to a prompt and the exchanges that are shown; None when they leave no room for one. Raises NoAnswer."""


@dataclass(frozen=True)
class PolicyWriter:
    """A `Policy` as a `Writer`: it puts conversations together token by token, as `rlkernel.refine` does."""

    policy: Policy

    async def write(self, prompt: str, shown: Sequence[Exchange], seed: int) -> Answer | None:
        """Sample the next answer; see `Writer.write`."""
        ids = tuple(self.policy.encode_prompt(prompt))
        for exchange in shown:
            truncated = exchange.answer.stop == "length"
            ids += exchange.answer.token_ids + tuple(self.policy.encode_feedback(exchange.feedback, truncated=truncated))
        completion = await self.policy.generate(ids, seed)
        if completion is None:
            return None
        return Answer(completion.text, completion.stop, completion.token_ids, len(ids), len(completion.token_ids))
