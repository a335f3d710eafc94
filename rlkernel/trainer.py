"""TRL's GRPO trainer with our rollouts, our advantages per turn, and our masks. This file and trl_arguments.py import trl.

TRL provides the optimiser, the clipped token-level loss, checkpoints and accelerate. We provide, for each step:

- the trajectories, through `rollout_func` (TRL pads them and would reward them; its own advantages are overwritten);
- `advantages` (B, C): the credit of each sampled token;
- `tool_mask` (B, C): 1 on the sampled tokens that were not rejected;
- `num_items_in_batch`: the number of turns that have such a token. TRL's `dapo` loss divides the sum over tokens by it, so that
  the loss is a token sum per turn, averaged over turns (arXiv 2602.05885 aggregates so), whatever the rows per micro-batch.

There is one optimiser step per batch of rollouts, so the importance ratio is 1 and nothing is clipped, also where the samples are
one update old (`Run.staleness`), which only a rejection such as MRS answers; TRL then uses the detached log-probabilities of the
same forward pass instead of a second one. TRL projects onto the vocabulary in tiles (`add_fused_lm_head`), so that no logits of a
whole micro-batch exist. To TRL a batch is one piece; `training_step` cuts it.

Legend: B rows, P prompt positions, C completion positions, A completion positions of a micro-batch laid out by `left_align`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import datasets
import torch
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOTrainer

from rlkernel.batch import Batch, Tokens, assemble, needs_ratios, pad_rows
from rlkernel.config import Run
from rlkernel.layout import causal_attention, left_align, micro_batches
from rlkernel.rollout import derive_seed
from rlkernel.rundir import COMPLETE
from rlkernel.trl_arguments import silence, training_arguments
from rlkernel.types import Group, Problem

MICRO_TOKENS = 16_384
"""Of a forward pass, padding included."""


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What one optimiser step did."""

    step: int
    """Optimiser steps so far, from 1."""
    groups: tuple[Group, ...]
    trained_turns: int
    """Turns with a token in the loss."""
    turns: int
    trained_tokens: int
    tokens: int
    """Sampled ones."""
    rejected: Mapping[str, int]
    """Turns that each rejection rejects, by `rlkernel.batch.names`."""
    loss: float
    grad_norm: float
    learning_rate: float
    entropy: float
    """Nats per trained token."""
    clip_fraction: float
    mismatch: float | None
    """Mean absolute difference of training and rollout log-probabilities, where a rejection or staleness asks for it."""

    def numbers(self) -> dict[str, float | None]:
        """Of a row of metrics; docs/metrics.md explains them."""
        return {
            "loss": self.loss,
            "grad_norm": self.grad_norm,
            "learning_rate": self.learning_rate,
            "entropy": self.entropy,
            "clip_fraction": self.clip_fraction,
            "mismatch": self.mismatch,
            "kept_turns": self.trained_turns / self.turns,
            "kept_tokens": self.trained_tokens / self.tokens,
            **{f"rejected_{name}": turns / self.turns for name, turns in self.rejected.items()},
        }


class Hooks(Protocol):
    """What the trainer asks of the loop, all from the trainer's thread."""

    def rollout(self, problems: Sequence[Problem], step: int) -> tuple[Group, ...]:
        """`Run.rollouts` trajectories of each problem, for the step that comes after `step` optimiser steps."""

    def turn(self) -> AbstractContextManager[None]:
        """Around GPU work that may meet evaluations on the same card: forward, backward and update, a micro-batch at a time."""

    def step_done(self, facts: StepFacts) -> None:
        """Called before the step's checkpoint is written."""

    def save(self, directory: Path) -> None:
        """Add to a checkpoint what the loop needs to go on from it."""

    def check_cancelled(self) -> None:
        """Raises when the run is to end now. Called between micro-batches."""


class KernelGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """See the module's docstring. plan: the indices of the problems of each step (`rlkernel.schedule`). micro_tokens: at most so
    many tokens, padding included, in one forward pass, or one longer row; it does not change what is computed."""

    def __init__(
        self,
        run: Run,
        model: Any,
        tokenizer: Any,
        problems: Sequence[Problem],
        plan: Sequence[Sequence[int]],
        hooks: Hooks,
        directory: Path,
        *,
        micro_tokens: int = MICRO_TOKENS,
        checkpoint_every: int = 1,
    ) -> None:
        self._run = run
        self._problems = tuple(problems)
        self._hooks = hooks
        self._tokens: Tokens | None = None
        self._facts: dict[str, Any] = {}
        self._micro_tokens = micro_tokens
        self.nothing_to_train = False
        flat = [index for indices in plan for index in indices]
        dataset = datasets.Dataset.from_dict({"prompt": [problems[i].name for i in flat], "problem": flat})
        silence()
        super().__init__(
            model=model,
            reward_funcs=_trajectory_reward,
            args=training_arguments(run, model, directory, checkpoint_every),
            train_dataset=dataset,
            processing_class=tokenizer,
            rollout_func=self._rows,
            callbacks=[_Recorder(self, hooks)],
        )
        self.remove_callback(PrinterCallback)

    def _rows(self, prompts: Sequence[str], trainer: Any) -> dict[str, Any]:
        """TRL's `rollout_func`: the trajectories made just before, as lists."""
        assert self._tokens is not None
        rows = self._tokens.rows
        return {
            "prompt_ids": [list(row.prompt_ids) for row in rows],
            "completion_ids": [list(row.completion_ids) for row in rows],
            "logprobs": [list(row.rollout_logprobs) for row in rows],
            "env_mask": [list(row.policy_mask) for row in rows],
        }

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        step = self.state.global_step
        problems = [self._problems[row["problem"]] for row in inputs[:: self.num_generations]]
        groups = self._hooks.rollout(problems, step)
        self._tokens = pad_rows(groups, self._tokenizer.pad_token_id)
        with self._hooks.turn():  # padding and copies to the card
            output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        wanted = needs_ratios(self._run.rejections) or self._run.staleness > 0
        train_logprobs_BC = self._train_logprobs(output) if wanted else None
        batch = assemble(
            groups,
            self._tokens,
            advantage=self._run.advantage,
            credit=self._run.credit,
            gamma=self._run.gamma,
            decode=lambda ids: str(self._tokenizer.decode(list(ids), skip_special_tokens=True)),
            rejections=self._run.rejections,
            train_logprobs_BC=train_logprobs_BC,
            generator=torch.Generator().manual_seed(derive_seed(self._run.seed, "rejection", step)),
        )
        self._facts = {
            "groups": groups,
            "trained_turns": batch.trained_turns,
            "turns": batch.turns,
            "trained_tokens": int(batch.loss_mask_BC.sum()),
            "tokens": int(self._tokens.policy_mask_BC.sum()),
            "rejected": dict(batch.rejected),
            "mismatch": None if train_logprobs_BC is None else _mismatch(self._tokens, train_logprobs_BC),
        }
        return {**output, **self._loss_inputs(batch)}

    def _loss_inputs(self, batch: Batch) -> dict[str, torch.Tensor]:
        device = self.accelerator.device
        trained = self.accelerator.gather(torch.tensor(batch.trained_turns, device=device)).sum()
        self.nothing_to_train = not bool(trained)
        return {
            "advantages": batch.advantages_BC.to(device),
            "tool_mask": batch.loss_mask_BC.to(device),
            "num_items_in_batch": trained,
        }

    @torch.no_grad()
    def _train_logprobs(self, output: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """logprobs_BC of `completion_ids`, float32, 0 in the padding: from the layout and the attention of `compute_loss`."""
        B, C = output["completion_ids"].shape
        found = torch.zeros(B, C)
        for rows in micro_batches(_lengths(output), self._micro_tokens):
            self._hooks.check_cancelled()
            with self._hooks.turn(), causal_attention(self.model):
                part = {key: output[key][rows] for key in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")}
                aligned = left_align(part)
                logprobs_BA, _, _ = self._get_per_token_logps_and_entropies(
                    self.model,
                    torch.cat([aligned["prompt_ids"], aligned["completion_ids"]], 1),
                    torch.cat([aligned["prompt_mask"], aligned["completion_mask"]], 1),
                    aligned["completion_ids"].shape[1],
                )
                # A row's completion starts where its own prompt ends; the columns A start where the shortest one does.
                moved_B1 = part["prompt_mask"].sum(1, keepdim=True) - aligned["prompt_ids"].shape[1]
                column_BC = (moved_B1 + torch.arange(C, device=moved_B1.device)).clamp(max=logprobs_BA.shape[1] - 1)
                found[rows] = (logprobs_BA.float().gather(1, column_BC) * part["completion_mask"]).cpu()
        return found

    def _prepare_inputs(self, micro_batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """TRL would make a batch here, shuffle it and cut it into pieces of equal numbers of rows."""
        return left_align(micro_batch)

    def compute_loss(self, model: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        with causal_attention(self.model):
            loss: torch.Tensor = super().compute_loss(model, *args, **kwargs)
        return loss

    def training_step(self, model: Any, inputs: list[dict[str, Any]], *args: Any, **kwargs: Any) -> torch.Tensor:
        """Make the batch of a step, then forward and backward, a micro-batch at a time; rows that do not train are left out."""
        self._hooks.check_cancelled()
        model.train()
        batch = self._generate_and_score_completions(inputs)
        tokens_B, lengths = batch["tool_mask"].sum(1).tolist(), _lengths(batch)
        trained = [b for b, tokens in enumerate(tokens_B) if tokens] or [min(range(len(lengths)), key=lengths.__getitem__)]
        losses, weights = [], []
        for indices in micro_batches([lengths[b] for b in trained], self._micro_tokens):
            self._hooks.check_cancelled()
            rows = [trained[i] for i in indices]
            # The attention around the backward pass, too: it recomputes activations.
            with self._hooks.turn(), causal_attention(self.model):
                part = {key: value[rows] if value.dim() else value for key, value in batch.items()}
                losses.append(super().training_step(model, part, *args, **kwargs))
            weights.append(sum(tokens_B[b] for b in rows))
        self._average(weights)
        return torch.stack(losses).sum()

    def _average(self, weights: Sequence[int]) -> None:
        """TRL has noted one mean per micro-batch; make one over all tokens of them. weights: trained tokens."""
        for name in ("entropy", "clip_ratio/region_mean"):
            noted = self._metrics["train"][name]
            means = noted[-len(weights) :]
            noted[-len(weights) :] = [sum(m * w for m, w in zip(means, weights, strict=True)) / max(sum(weights), 1)]

    def _clip_grad_norm(self, model: Any) -> Any:
        with self._hooks.turn():
            return super()._clip_grad_norm(model)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """A checkpoint of a run is not a publication."""

    def record(self, logs: Mapping[str, float], step: int) -> None:
        """Join TRL's numbers of a finished step with ours."""
        facts = StepFacts(
            step=step,
            loss=logs["loss"],
            grad_norm=float(logs["grad_norm"]),
            learning_rate=logs["learning_rate"],
            entropy=logs["entropy"],
            clip_fraction=logs["clip_ratio/region_mean"],
            **self._facts,
        )
        self._hooks.step_done(facts)


class _Recorder(TrainerCallback):  # type: ignore[misc]
    """Updates in a turn, reports each step before its checkpoint is written, and marks checkpoints that are complete."""

    def __init__(self, trainer: KernelGRPOTrainer, hooks: Hooks) -> None:
        self.trainer = trainer
        self.hooks = hooks
        self.update = ExitStack()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.trainer.nothing_to_train:
            # The optimiser skips parameters without a gradient; a gradient of 0 would move them on by momentum.
            kwargs["optimizer"].zero_grad(set_to_none=True)
        self.update.enter_context(self.hooks.turn())

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.update.close()

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, float], **kwargs: Any) -> None:
        if "loss" in logs:  # the summary at the end of training has none
            self.trainer.record(logs, state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        directory = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self.hooks.save(directory)
        (directory / COMPLETE).touch()


def _lengths(batch: Mapping[str, torch.Tensor]) -> list[int]:
    """Tokens of each row."""
    lengths: list[int] = (batch["prompt_mask"].sum(1) + batch["completion_mask"].sum(1)).tolist()
    return lengths


def _mismatch(tokens: Tokens, train_logprobs_BC: torch.Tensor) -> float:
    sampled_BC = tokens.policy_mask_BC.bool()
    return float((train_logprobs_BC - tokens.rollout_logprobs_BC)[sampled_BC].abs().mean())


def _trajectory_reward(prompts: Sequence[str], completions: Sequence[str], **columns: Any) -> list[float]:
    """TRL demands a reward function; its advantages are overwritten."""
    return [0.0] * len(prompts)
