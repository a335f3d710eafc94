"""The Protocols that the parts meet at. Implementations are frozen dataclasses (values) or async context managers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch

    from rlkernel.types import Completion, Evaluation, Group, Problem, Turn


class Policy(Protocol):
    """Turns token ids into sampled completions. `generate` may be awaited by many trajectories at once."""

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """The tokens of the first user message, ending where the assistant starts to write."""

    def encode_feedback(self, text: str, truncated: bool = False) -> tuple[int, ...]:
        """The tokens that close the assistant's turn and hold the next user message. Appended, never re-rendered.

        truncated: the completion ran into its length limit, so the turn has no end token yet.
        """

    async def generate(self, prompt_ids: Sequence[int], seed: int) -> Completion | None:
        """Sample one completion for the whole context so far; None when the context leaves no room for one.

        The sample is a function of the weights, the context and `seed`, whatever else is in flight.
        """


class Evaluator(Protocol):
    """Judges candidates. Failure of a candidate is a value; failure of the evaluator raises."""

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation: ...


class Environment(Protocol):
    """What a problem looks like to the policy: prompt, extraction, feedback."""

    def prompt(self, problem: Problem) -> str: ...

    def extract(self, completion: str) -> str | None: ...

    def feedback(self, evaluation: Evaluation) -> str: ...


@runtime_checkable
class Reward(Protocol):
    """Facts to a number, one turn at a time. Raises on facts that it does not know, rather than guessing."""

    def __call__(self, evaluation: Evaluation) -> float: ...


@runtime_checkable
class Advantage(Protocol):
    """Returns of one group to advantages, per turn.

    Legend: K trajectories of one problem, T turns (padded).
    """

    def __call__(self, returns_KT: torch.Tensor, valid_KT: torch.Tensor) -> torch.Tensor:
        """returns_KT: float64 returns to go (`rlkernel.returns.returns_to_go` of the rewards; equal to the rewards when
        gamma is 0); valid_KT: bool, False where a trajectory ended early. Values of returns_KT there have no influence.

        Returns advantages_KT float64, 0 where not valid.
        """


@runtime_checkable
class Rejection(Protocol):
    """Says which turns of a group may train. Composed by logical and."""

    def __call__(
        self, group: Group, train_logprobs: Sequence[Sequence[torch.Tensor]], generator: torch.Generator
    ) -> torch.Tensor:
        """train_logprobs[k][t]: float tensor, the trainer's log-probabilities of turn t's sampled tokens.

        Returns keep_KT, bool.
        """


@runtime_checkable
class Credit(Protocol):
    """Spreads one turn's advantage over its tokens."""

    def __call__(self, turn: Turn, advantage: float) -> torch.Tensor:
        """Returns advantage_T, float, one value per sampled token of the turn."""
