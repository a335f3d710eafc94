"""The Protocols that the parts meet at. Implementations are frozen dataclasses (values) or async context managers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import torch

    from rlkernel.history import History
    from rlkernel.types import Completion, Evaluation, Group, Problem, Turn


class Policy(Protocol):
    """Turns token ids into sampled completions. `generate` may be awaited by many trajectories at once."""

    def encode_prompt(self, text: str) -> tuple[int, ...]:
        """The tokens of the first user message, ending where the assistant starts to write."""

    def encode_feedback(self, text: str, truncated: bool = False) -> tuple[int, ...]:
        """The tokens that close the assistant's turn and hold the next user message. Appended, never re-rendered.

        truncated: the completion ran into its length limit, so the turn has no end token yet.
        """

    async def generate(
        self, prompt_ids: Sequence[int], seed: int, begun: Completion | None = None, tokens: int | None = None
    ) -> Completion | None:
        """Sample one completion for the whole context so far; None when the context leaves no room for one.

        begun: the part of it that was sampled earlier, perhaps by other weights, with which the result begins. tokens: sample at
        most so many, at least 1; a completion that could go on is then `paused`. Neither changes what is sampled as long as the
        weights stay: the sample is a function of the weights, the context and `seed`, whatever else is in flight.
        """


class Evaluator(Protocol):
    """What judges candidates. Failure of a candidate is a value; failure of the evaluator raises."""

    async def evaluate(self, problem: Problem, code: str | None) -> Evaluation: ...


@runtime_checkable
class CardEvaluator(Evaluator, Protocol):
    """An evaluator with cards of its own, one of which it may share with this process. The loop asks for what this says."""

    @property
    def shares(self) -> bool:
        """Whether our own process and the evaluations use the same card."""

    def lease(self) -> AbstractAsyncContextManager[None]:
        """Exclusive use of the shared card for our own process; at once where no card is shared. The GPU work must have finished
        when the lease ends, or it would slow the next candidate's measurement."""

    @property
    def waited_seconds(self) -> tuple[float, float] | None:
        """Seconds that candidates, and that our own process, have waited for a card, each summed over all who waited. None where
        nobody waits for one."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Lines about what makes measured times less trustworthy, as many as there are by now."""

    def describe(self) -> dict[str, Any]:
        """What judges, with every limit, as JSON for a run's manifest."""


@runtime_checkable
class Environment(Protocol):
    """What a problem looks like to the policy: prompt, extraction, feedback."""

    def prompt(self, problem: Problem) -> str: ...

    def extract(self, completion: str) -> str | None: ...

    def feedback(self, evaluation: Evaluation) -> str: ...


@runtime_checkable
class Reward(Protocol):
    """Turns the facts of one turn into a number. Raises on facts that it does not know, rather than guessing."""

    def __call__(self, evaluation: Evaluation) -> float: ...


@runtime_checkable
class Advantage(Protocol):
    """Turns the returns of a batch of groups into advantages, one per turn.

    Legend: G groups of the batch (one problem each), K trajectories of a group, T turns (padded).
    """

    def __call__(self, returns_GKT: torch.Tensor, valid_GKT: torch.Tensor) -> torch.Tensor:
        """The advantages of a batch: advantages_GKT, float64, 0 where not valid.

        returns_GKT: float64 returns to go (`rlkernel.training.returns.returns_to_go` of the rewards; equal to the rewards when
        gamma is 0). valid_GKT: bool, False where a trajectory ended early or a rejection has taken the turn out of its group;
        values of returns_GKT there have no influence.
        """


Removes = Literal["loss", "baseline", "return"]
"""What a rejected turn is taken out of. `loss`: the loss and its denominator. `baseline`: also its group, so that others are not
compared with it. `return`: also the returns to go of the turns before it, where its reward counts 0."""


@runtime_checkable
class Correction(Protocol):
    """Weighs the sampled tokens of a group in the loss; the weight 0 drops a token. One that only drops is called a rejection.
    Several are asked in the order of the run: each sees what those before it kept, and their weights multiply.

    Legend: K trajectories of the group, T turns (padded), L sampled tokens of a turn (padded).
    """

    @property
    def removes(self) -> Removes: ...

    @property
    def needs_ratios(self) -> bool:
        """Whether log_ratios_KTL is looked at. It belongs to the class and is not a field: `needs_ratios: ClassVar[bool] =
        False`."""

    def __call__(
        self, group: Group, log_ratios_KTL: torch.Tensor, kept_KTL: torch.Tensor, generator: torch.Generator
    ) -> torch.Tensor:
        """The weight of each token's loss: weights_KTL, float, finite and not negative; bool says keep or drop, the weights 1 and
        0. What it says of padding has no influence. A turn is rejected if no token in kept_KTL has a weight above 0; one
        without any token there is rejected if nothing of it has. The denominator of the loss counts what has a weight above 0,
        whatever the weight.

        log_ratios_KTL: float, log-probability under the trainer minus that at sampling time, 0 where not sampled. Where no
        correction of the run needs ratios, they are all 0: the forward pass for them is left out. kept_KTL: bool, the sampled
        tokens that the corrections before this one kept, False for padding. Draws come from `generator` alone.
        """


@runtime_checkable
class Sampler(Protocol):
    """Chooses the problems that a step trains. It has no state of its own: what it may know is the history, which a checkpoint
    holds, so that a resumed run draws what it would have drawn."""

    @property
    def rounds(self) -> int:
        """How often a step may draw at most; 1 where every group is kept."""

    def keeps(self, group: Group) -> bool:
        """Whether a group that was sampled is trained. Others are drawn in its place, as long as there are rounds."""

    def __call__(
        self, problems: Sequence[Problem], history: History, count: int, seed: int, without: frozenset[int]
    ) -> tuple[int, ...]:
        """`count` different indices of problems, as a function of the arguments alone. without: those that this step has drawn
        already, which are not drawn again; a sampler that has fewer others gives those."""


Decode = Callable[[Sequence[int]], str]
"""Token ids to text, without special tokens: what made `Completion.text`."""


@runtime_checkable
class Credit(Protocol):
    """Spreads a turn's advantages over its tokens."""

    def rewards(self, turn: Turn) -> tuple[float, ...]:
        """What the turn is worth, one number per advantage that `__call__` wants, always as many."""

    def __call__(self, turn: Turn, advantages: Sequence[float], decode: Decode) -> torch.Tensor:
        """The turn's advantages spread over its tokens: advantage_L, float, one value per sampled token.

        advantages: the run's advantage over each of the `rewards`.
        """
