"""The evaluator as a reward function of TRL's trainers: `GRPOTrainer(reward_funcs=[reward], ...)`.

    from rlkernel.environment.kernel_env import KernelEnvironment
    from rlkernel.environment.speed_reward import SpeedReward

    with open_service() as service:
        reward = RewardFunction(service, KernelEnvironment(), SpeedReward())
        trainer = GRPOTrainer(model, reward_funcs=[reward], train_dataset=Dataset.from_list(rows(problems, reward.environment)))

The problem arrives in the data set's columns `problem` (its name) and `reference` (its file's text). TRL calls an async reward
function with lists of equal length, one entry per completion, and gathers it with other async ones. A candidate's failure is a
reward; a broken reference, or an evaluator that fails, raises, which ends the training: its rewards would mean nothing.

`reward.blocking(...)` takes and gives the same without an event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any

from rlkernel.evaluator.config import check_for_training
from rlkernel.integrations.service import Service
from rlkernel.interfaces import Environment, Reward
from rlkernel.returned import reward_of
from rlkernel.types import Evaluation, Problem


def rows(problems: Iterable[Problem], environment: Environment, *, conversational: bool = True) -> list[dict[str, Any]]:
    """The rows of a data set for TRL. conversational: the prompt as a message, for models with a chat template; else as text."""
    found = []
    for problem in problems:
        text = environment.prompt(problem)
        prompt: Any = [{"role": "user", "content": text}] if conversational else text
        found.append({"prompt": prompt, "problem": problem.name, "reference": problem.source})
    return found


def text_of(completion: Any) -> str:
    """What was written: a text, or the last assistant message of a conversation.

    >>> text_of([{"role": "assistant", "content": "a"}]), text_of("b")
    ('a', 'b')
    """
    if isinstance(completion, str):
        return completion
    said = [message.get("content") for message in completion if message.get("role") == "assistant"]
    return next((content for content in reversed(said) if isinstance(content, str)), "")


class RewardFunction:
    """A reward function that TRL awaits; its name is that of the reward's class, under which TRL logs it. Raises UsageError for a
    service whose verdicts a policy could learn to forge."""

    def __init__(self, service: Service, environment: Environment, reward: Reward) -> None:
        check_for_training(service.describe())
        self.service = service
        self.environment = environment
        self.reward = reward
        self.__name__ = type(reward).__name__
        self.last: Sequence[Evaluation] = ()
        """Facts of the latest call, for whoever logs more than the reward."""

    async def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], problem: Sequence[str], reference: Sequence[str], **columns: Any
    ) -> list[float]:
        """One reward per completion. Raises BrokenReference, or EvaluatorFailed. `columns` are not looked at."""
        asked = (
            self.service.evaluate_async(Problem(name, 0, "train", source), self.environment.extract(text_of(completion)))
            for completion, name, source in zip(completions, problem, reference, strict=True)
        )
        self.last = await asyncio.gather(*asked)
        return [reward_of(self.reward, evaluation) for evaluation in self.last]

    def blocking(
        self, prompts: Sequence[Any], completions: Sequence[Any], problem: Sequence[str], reference: Sequence[str], **columns: Any
    ) -> list[float]:
        """The same for a caller without an event loop. All completions are judged at once."""
        asked = [
            self.service.submit(Problem(name, 0, "train", source), self.environment.extract(text_of(completion)))
            for completion, name, source in zip(completions, problem, reference, strict=True)
        ]
        self.last = [future.result() for future in asked]
        return [reward_of(self.reward, evaluation) for evaluation in self.last]
