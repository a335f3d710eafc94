"""The whole idea in one file, read from top to bottom: sample, evaluate, advantage, loss, step.

    python -m examples.rl_loop --steps 6        about a minute on two cores, without a GPU

A policy of about a million parameters (shipped) reads PyTorch modules and writes Triton kernels for them. It makes several
trajectories of each problem, of two turns each. The evaluator judges the answer of every turn. Each answer is then made more or
less probable, by how much better or worse it did than the others of the same problem.

    problem -- prompt --> policy -- answer --> evaluator -- facts --> reward --> return to go --> advantage --> loss --> weights
                            ^                      |
                            '------ feedback ------'

Nothing here is a simplified copy: policy, evaluator, environment, reward and estimator are the package's own. Left out is what a
real run needs besides: TRL's trainer, validation, checkpoints, corrections, overlap with training, a card that is shared. That is
in `rlkernel/training`; start at its `loop.py`.

Legend: G problems of a step, K trajectories of a problem, T turns, B = G * K rows, S tokens of the longest row.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio
import torch

from algorithms.trloo import TRLOO
from envs.problems import family_of, load_suite
from rlkernel.environment.kernel_env import KernelEnvironment
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.errors import exit_status
from rlkernel.evaluator.pool import open_pool
from rlkernel.interfaces import Advantage, Environment, Evaluator, Policy, Reward
from rlkernel.methods import check_instance
from rlkernel.metrics import is_fast
from rlkernel.policy.hf import open_policy
from rlkernel.policy.load import load_model
from rlkernel.rollout import derive_seed
from rlkernel.training.returns import check_advantages, returns_to_go
from rlkernel.types import Group, Problem, Trajectory, Turn


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen. Another estimator is `Settings(advantage=GRPO())`, or one of your own."""

    steps: int = 6
    problems: int = 4
    """Problems per step, G."""
    rollouts: int = 4
    """Trajectories of each problem, K: the group in which answers are compared."""
    turns: int = 2
    """Turns of a trajectory, T. Before each but the first, the policy is told what became of its last answer."""
    max_new_tokens: int = 256
    """The length at which an answer is cut off."""
    learning_rate: float = 1e-3
    seed: int = 0
    device: str = "auto"
    """Where kernels are judged: on every GPU that is there, otherwise on the CPU, with modelled time."""
    environment: Environment = KernelEnvironment(style="short")  # noqa: RUF009  (a frozen value)
    reward: Reward = SpeedReward()  # noqa: RUF009
    advantage: Advantage = TRLOO()  # noqa: RUF009

    def __post_init__(self) -> None:
        """Raises UsageError for what is no such method, e.g. a class in place of its instance."""
        for name, kind in (("environment", Environment), ("reward", Reward), ("advantage", Advantage)):
            check_instance(f"Settings.{name}", getattr(self, name), kind)


# 1. Sample and evaluate. A trajectory is a conversation between the policy, which writes, and the evaluator, which judges.


async def trajectory(problem: Problem, policy: Policy, evaluator: Evaluator, settings: Settings, seed: int) -> Trajectory:
    """One conversation about a problem. It ends early only if the context has no room for another answer."""
    turns: list[Turn] = []
    context_ids = policy.encode_prompt(settings.environment.prompt(problem))
    sequence_ids: tuple[int, ...] = ()
    for t in range(settings.turns):
        sequence_ids += context_ids
        completion = await policy.generate(sequence_ids, derive_seed(seed, t))
        if completion is None:
            break
        sequence_ids += completion.token_ids
        # The code is untrusted: the evaluator runs it in a locked process. Whatever is wrong with it is a status, never an error.
        code = settings.environment.extract(completion.text)
        evaluation = await evaluator.evaluate(problem, code)
        feedback = settings.environment.feedback(evaluation)
        turns.append(Turn(context_ids, completion, code, evaluation, settings.reward(evaluation), feedback))
        context_ids = policy.encode_feedback(feedback, truncated=completion.stop == "length")
    return Trajectory(problem, tuple(turns))


async def sample_groups(
    problems: Sequence[Problem], policy: Policy, evaluator: Evaluator, settings: Settings, seed: int
) -> list[Group]:
    """K trajectories of each of G problems, all at once. Each waits for its own answer and its own verdict, never for others."""
    found: dict[tuple[int, int], Trajectory] = {}

    async def one(g: int, k: int) -> None:
        found[g, k] = await trajectory(problems[g], policy, evaluator, settings, derive_seed(seed, g, k))

    async with anyio.create_task_group() as tasks:
        for g in range(len(problems)):
            for k in range(settings.rollouts):
                tasks.start_soon(one, g, k)
    return [Group(problem, tuple(found[g, k] for k in range(settings.rollouts))) for g, problem in enumerate(problems)]


# 2. Advantages: how much better an answer did than the other trajectories of its problem did in the same turn.


def turn_advantages(groups: Sequence[Group], settings: Settings) -> torch.Tensor:
    """advantages_GKT. An answer is credited with its own reward and with those of the turns after it, which it prepared.

    Raises UsageError for advantages of another shape, or that are not finite, which would train without a word.
    """
    rewards_GKT = torch.zeros(len(groups), settings.rollouts, settings.turns, dtype=torch.float64)
    valid_GKT = torch.zeros(rewards_GKT.shape, dtype=torch.bool)
    for g, group in enumerate(groups):
        for k, trajectory in enumerate(group.trajectories):
            for t, turn in enumerate(trajectory.turns):
                rewards_GKT[g, k, t] = turn.reward
                valid_GKT[g, k, t] = True
    advantages_GKT = settings.advantage(returns_to_go(rewards_GKT, valid_GKT, gamma=1.0), valid_GKT)
    check_advantages(settings.advantage, advantages_GKT, valid_GKT)
    return advantages_GKT


# 3. Loss: the policy gradient, over the tokens that the policy itself wrote.


def pad_rows(groups: Sequence[Group], advantages_GKT: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One row per trajectory, padded on the right: tokens_BS; real_BS, False for padding; weights_BS.

    The weight of a token that the policy wrote is the advantage of its turn. Prompts and feedback have the weight 0: the policy
    reads them and did not choose them.
    """
    rows, weights = [], []
    for g, group in enumerate(groups):
        for k, trajectory in enumerate(group.trajectories):
            row: list[int] = []
            weight: list[float] = []
            for t, turn in enumerate(trajectory.turns):
                row += [*turn.context_ids, *turn.completion.token_ids]
                weight += [0.0] * len(turn.context_ids)
                weight += [float(advantages_GKT[g, k, t])] * len(turn.completion.token_ids)
            rows.append(torch.tensor(row, dtype=torch.long))
            weights.append(torch.tensor(weight))
    real = [torch.ones_like(row, dtype=torch.bool) for row in rows]
    tokens_BS, real_BS, weights_BS = (torch.nn.utils.rnn.pad_sequence(part, batch_first=True) for part in (rows, real, weights))
    return tokens_BS, real_BS, weights_BS


def policy_gradient_loss(
    model: Any, tokens_BS: torch.Tensor, real_BS: torch.Tensor, weights_BS: torch.Tensor, turns: int
) -> torch.Tensor:
    """- sum over tokens of weight * log pi(token | all before it), divided by the number of turns (arXiv 2602.05885).

    Every batch is used for one step, by the weights that sampled it, so there is no ratio to clip.
    """
    logits_BSV = model(input_ids=tokens_BS, attention_mask=real_BS.long()).logits
    # The logits at position s predict the token at s + 1.
    log_pi_BS = logits_BSV[:, :-1].log_softmax(-1).gather(-1, tokens_BS[:, 1:, None])[..., 0]
    loss: torch.Tensor = -(weights_BS[:, 1:] * log_pi_BS).sum() / turns
    return loss


# 4. Step: all of it, again and again.


def describe(step: int, turns: Sequence[Turn], seconds: float) -> str:
    """The line that is printed after a step.

    The shares are of the step's turns. A turn is fast if it is correct and at least 1.2 times as fast as the reference. Tokens
    are those that the policy wrote, per second of the whole step.
    """
    reward = sum(turn.reward for turn in turns) / len(turns)
    correct = sum(turn.evaluation.correct for turn in turns) / len(turns)
    fast = sum(is_fast(turn, 1.2) for turn in turns) / len(turns)
    tokens = sum(len(turn.completion.token_ids) for turn in turns)
    shares = f"correct {100 * correct:3.0f} %  fast {100 * fast:3.0f} %"
    return f"step {step:3}  reward {reward:5.2f}  {shares}  {tokens / seconds:6,.0f} tokens/s  {seconds:5.1f} s"


async def train(model: Any, tokenizer: Any, problems: Sequence[Problem], settings: Settings, show: Callable[[str], None]) -> None:
    """Train `model` in place for `settings.steps` steps; `show` gets one line after each."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=0.0)
    dice = random.Random(settings.seed)
    async with (
        open_pool(device=settings.device) as evaluator,
        open_policy(model, tokenizer, max_new_tokens=settings.max_new_tokens) as policy,
    ):
        for step in range(1, settings.steps + 1):
            started = time.perf_counter()
            policy.refresh()  # sample from the weights of now
            chosen = dice.sample(problems, settings.problems)
            groups = await sample_groups(chosen, policy, evaluator, settings, derive_seed(settings.seed, step))
            turns = [turn for group in groups for trajectory in group.trajectories for turn in trajectory.turns]

            rows = pad_rows(groups, turn_advantages(groups, settings))
            loss = policy_gradient_loss(model, *rows, len(turns))
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            show(describe(step, turns, time.perf_counter() - started))


def main(argv: Sequence[str] | None = None, **sizes: Any) -> None:
    """The command line. `sizes` are fields of `Settings` that have no flag. Exits with status 2, after one line, for what is
    unusable, such as an estimator that returns NaN."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=Settings.steps, help="optimiser steps")
    parser.add_argument("--seed", type=int, default=Settings.seed, help="decides the problems and the draws")
    given = parser.parse_args(argv)

    def run() -> None:
        settings = Settings(steps=given.steps, seed=given.seed, **sizes)
        model, tokenizer = load_model("small")
        # The small policy knows one family of problems: chains of elementwise operations.
        problems = [problem for problem in load_suite() if problem.split == "train" and family_of(problem) == "chain"]
        anyio.run(train, model, tokenizer, problems, settings, partial(print, flush=True))

    if status := exit_status(run):
        sys.exit(status)


if __name__ == "__main__":
    main()
