"""A policy as a writer of answers."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from rlkernel.policy.writer import Answer, Exchange, PolicyWriter
from rlkernel.types import Completion


class Tokens:
    """A policy whose tokens show how a conversation was put together."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        return (len(text),)

    def encode_feedback(self, text: str, truncated: bool = False) -> tuple[int, ...]:
        return (8 if truncated else 9,)

    async def generate(
        self, prompt_ids: Sequence[int], seed: int, begun: Completion | None = None, tokens: int | None = None
    ) -> Completion | None:
        self.seeds.append(seed)
        return None if len(prompt_ids) > 6 else Completion((50, 51), (0.0, 0.0), str(list(prompt_ids)), "stop")


FIRST = Exchange(Answer("a", "stop", (20, 21)), "f")
SECOND = Exchange(Answer("b", "length", (30,)), "g")


def test_a_policy_writes_on_the_very_tokens_that_it_sampled() -> None:
    # The prompt of one letter; 20 21 and feedback 9; 30, which was cut off, and feedback 8.
    answer = anyio.run(PolicyWriter(Tokens()).write, "p", [FIRST, SECOND], 0)
    assert answer == Answer("[1, 20, 21, 9, 30, 8]", "stop", (50, 51), prompt_tokens=6, completion_tokens=2)


def test_only_what_is_shown_is_in_the_conversation() -> None:
    answer = anyio.run(PolicyWriter(Tokens()).write, "pr", [SECOND], 0)
    assert answer is not None and answer.text == "[2, 30, 8]"


def test_a_conversation_without_room_has_no_answer() -> None:
    # Nine tokens: one of the prompt, three of the first exchange, two of the second, three of the first again.
    assert anyio.run(PolicyWriter(Tokens()).write, "p", [FIRST, SECOND, FIRST], 0) is None


def test_the_seed_reaches_the_policy() -> None:
    policy = Tokens()
    anyio.run(PolicyWriter(policy).write, "p", [], 17)
    assert policy.seeds == [17]
