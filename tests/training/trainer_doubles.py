"""Doubles for the trainer: scripted rollouts, hooks that record, rejections that are known, and a plain forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from algorithms.trloo import TRLOO
from algorithms.uniform_credit import UniformCredit
from rlkernel.config import Run
from rlkernel.environment.speed_reward import SpeedReward
from rlkernel.interfaces import Correction, Environment, Removes
from rlkernel.runs.checkpoints import COMPLETE
from rlkernel.training.hooks import StepFacts
from rlkernel.training.trainer import KernelGRPOTrainer
from rlkernel.types import Completion, Evaluation, Group, Problem, Status, Trajectory, Turn

PROBLEMS = tuple(Problem(f"p{i}", 1, "train", "") for i in range(2))


@dataclass(frozen=True)
class NoEnvironment:
    """Rollouts are scripted, so nobody asks."""

    def prompt(self, problem: Problem) -> str:
        raise NotImplementedError

    extract = feedback = prompt  # type: ignore[assignment]


def make_turn(context: tuple[int, ...], sampled: tuple[int, ...], reward: float) -> Turn:
    completion = Completion(sampled, tuple(-float(token) / 100 for token in sampled), "", "stop")
    return Turn(context, completion, None, Evaluation(Status.INCORRECT, ""), reward, "")


def make_groups(problems: Sequence[Problem]) -> tuple[Group, ...]:
    """Two trajectories each: two turns with feedback between them, and one turn."""
    return tuple(
        Group(
            problem,
            (
                Trajectory(problem, (make_turn((10, 11, 12), (20, 21 + i), 1.0), make_turn((30,), (40, 41, 42), 2.0))),
                Trajectory(problem, (make_turn((10, 11, 12)[i:], (50, 51, 52), 0.5),)),
            ),
        )
        for i, problem in enumerate(problems)
    )


@dataclass
class ScriptedHooks:
    """A test double of the loop."""

    asked: list[int] = field(default_factory=list)
    facts: list[StepFacts] = field(default_factory=list)
    checks: int = 0
    turns: int = 0

    def rollout(self, step: int) -> tuple[Group, ...]:
        self.asked.append(step)
        return make_groups(PROBLEMS)

    def step_done(self, facts: StepFacts) -> None:
        self.facts.append(facts)

    def enough(self) -> bool:
        return False

    def check_cancelled(self) -> None:
        self.checks += 1

    @contextmanager
    def lease(self) -> Iterator[None]:
        self.turns += 1
        yield

    def save(self, directory: Path) -> None:
        assert not (directory / COMPLETE).exists()  # it is not, before this is saved
        (directory / "saved").touch()


@dataclass(frozen=True)
class RejectFromSecondStep:
    """Keeps the two groups of the first step, and nothing afterwards."""

    asked: list[Group]
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(self, group: Group, log_ratios_KTL: Any, kept_KTL: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        self.asked.append(group)
        return torch.full(kept_KTL.shape, len(self.asked) <= 2)


@dataclass(frozen=True)
class RejectFirstTurns:
    """Keeps only second turns; records the log-ratios that it was shown."""

    seen: list[Any]
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(self, group: Group, log_ratios_KTL: Any, kept_KTL: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        self.seen.append(log_ratios_KTL)
        keep = torch.zeros(kept_KTL.shape, dtype=torch.bool)
        keep[:, 1] = True
        return keep


@dataclass(frozen=True)
class RecordSeed:
    """Keeps everything; records the seed of its draws."""

    seeds: list[int]
    removes: Removes = "loss"
    needs_ratios: ClassVar[bool] = True

    def __call__(self, group: Group, log_ratios_KTL: Any, kept_KTL: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        self.seeds.append(generator.initial_seed())
        return torch.ones(kept_KTL.shape, dtype=torch.bool)


def make_trainer(
    model: Any, tokenizer: Any, directory: Path, *rejections: Correction, micro_tokens: int = 64, steps: int = 1, **changes: Any
) -> tuple[KernelGRPOTrainer, ScriptedHooks]:
    environment: Environment = NoEnvironment()
    run = Run(
        "test",
        PROBLEMS,
        environment,
        SpeedReward(),
        TRLOO(),
        UniformCredit(),
        corrections=rejections,
        prompts_per_step=2,
        rollouts=2,
        turns=2,
        steps=steps,
        learning_rate=1e-3,
    )
    hooks = ScriptedHooks()
    trainer = KernelGRPOTrainer(replace(run, **changes), model, tokenizer, hooks, directory, micro_tokens=micro_tokens)
    return trainer, hooks


def batch_of(trainer: KernelGRPOTrainer) -> dict[str, torch.Tensor]:
    trainer.model.train()
    trainer.current_gradient_accumulation_steps = trainer.args.gradient_accumulation_steps
    inputs = [{"prompt": f"p{i}"} for i in (0, 0, 1, 1)]
    return trainer._generate_and_score_completions(inputs)


def sampled_logprobs(model: Any, trajectory: Trajectory, temperature: float) -> list[torch.Tensor]:
    """Per turn, by an unpadded forward pass of the plain model."""
    ids: list[int] = []
    spans = []
    for turn in trajectory.turns:
        ids += turn.context_ids
        spans.append((len(ids), len(ids) + len(turn.completion.token_ids)))
        ids += turn.completion.token_ids
    logits = model(input_ids=torch.tensor([ids])).logits[0] / temperature
    logprobs = logits.log_softmax(-1)[:-1].gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
    return [logprobs[start - 1 : end - 1] for start, end in spans]
