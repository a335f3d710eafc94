"""TRL's GRPO trainer with our rollouts, our advantages per turn, and our masks. This file and trl_arguments.py import trl.

TRL provides the optimiser, the clipped token-level loss, checkpoints and accelerate. We provide, for each step:

- the trajectories, through `rollout_func` (TRL pads them and would reward them; its own advantages are overwritten);
- `advantages` (B, C): the credit of each sampled token times its weight. This multiplies the token's loss, clipped or not, by the
  weight, because no weight is negative;
- `tool_mask` (B, C): 1 on the sampled tokens that were not rejected;
- `num_items_in_batch`: the number of turns that have such a token. TRL's `dapo` loss divides the sum over tokens by it, so that
  the loss is a token sum per turn, averaged over turns (arXiv 2602.05885 aggregates so), whatever the rows per micro-batch.
  Weights above 0 do not change the denominator.

There is one optimiser step per batch of rollouts, so the importance ratio is 1 and nothing is clipped, also where the samples are
one update old (`Run.staleness`), which only corrections such as TIS or MRS answer; TRL then uses the detached log-probabilities
of the same forward pass instead of a second one. TRL projects onto the vocabulary in tiles (`add_fused_lm_head`), so that no
logits of a whole micro-batch exist. To TRL a batch is one piece; `training_step` cuts it.

With several processes (`rlkernel.training.ranks`), every one has the whole batch and makes the same masks and advantages from it,
but only its share of the rows goes through the model. Gradients are joined in the last backward pass of a step, log-probabilities
and statistics once per step. The loss has one denominator: TRL multiplies a process's by their number, because gradients are
averaged over them.

Legend: B rows, P prompt positions, C completion positions, A completion positions of a micro-batch laid out by `left_align`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import datasets
import torch
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOTrainer

from rlkernel.config import Run
from rlkernel.rollout import derive_seed
from rlkernel.runs import checkpoints
from rlkernel.training import ranks
from rlkernel.training.batch import Batch, Tokens, assemble, needs_ratios, pad_rows
from rlkernel.training.diagnostics import effective_share, mismatch
from rlkernel.training.hooks import Hooks, StepFacts
from rlkernel.training.micro_batches import causal_attention, deal, left_align, micro_batches
from rlkernel.training.trl_arguments import silence, training_arguments

MICRO_TOKENS = 16_384
"""The most tokens of one forward pass, padding included."""


class KernelGRPOTrainer(GRPOTrainer):  # type: ignore[misc]
    """TRL's trainer with our batches, as the module's docstring says.

    micro_tokens: at most so many tokens, padding included, in one forward pass, or one longer row; it does not change what is
    computed."""

    def __init__(
        self,
        run: Run,
        model: Any,
        tokenizer: Any,
        hooks: Hooks,
        directory: Path,
        *,
        micro_tokens: int = MICRO_TOKENS,
        checkpoint_every: int = 1,
    ) -> None:
        self._run = run
        self._hooks = hooks
        self._tokens: Tokens | None = None
        self._facts: dict[str, Any] = {}
        self._micro_tokens = micro_tokens
        self.nothing_to_train = False
        # TRL counts steps by it; what is in a batch is the hooks' affair.
        dataset = datasets.Dataset.from_dict({"prompt": [""] * (run.steps * run.prompts_per_step * ranks.size())})
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

    def train(self, *args: Any, **kwargs: Any) -> Any:
        with ranks.noticed():
            # The others wait here for the first one's validation, and not in the group of the gradients, which would give up.
            ranks.meet()
            return super().train(*args, **kwargs)

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
        groups = self._hooks.rollout(step)
        self._tokens = pad_rows(groups, self._tokenizer.pad_token_id)
        with self._hooks.lease():  # padding and copies to the card
            output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        wanted = needs_ratios(self._run.corrections) or self._run.staleness > 0
        train_logprobs_BC = self._train_logprobs(output) if wanted else None
        batch = assemble(
            groups,
            self._tokens,
            advantage=self._run.advantage,
            credit=self._run.credit,
            gamma=self._run.gamma,
            decode=lambda ids: str(self._tokenizer.decode(list(ids), skip_special_tokens=True)),
            corrections=self._run.corrections,
            train_logprobs_BC=train_logprobs_BC,
            generator=torch.Generator().manual_seed(derive_seed(self._run.seed, "rejection", step)),
        )
        sampled_BC = self._tokens.policy_mask_BC.bool()
        self._facts = {
            "groups": groups,
            "trained_turns": batch.trained_turns,
            "turns": batch.turns,
            "trained_tokens": int(batch.loss_mask_BC.sum()),
            "tokens": int(self._tokens.policy_mask_BC.sum()),
            "rejected": dict(batch.rejected),
            "mismatch": None
            if train_logprobs_BC is None
            else mismatch(train_logprobs_BC, self._tokens.rollout_logprobs_BC, sampled_BC),
            "effective_tokens": effective_share(batch.weights_BC, sampled_BC),
        }
        return {**output, **self._loss_inputs(batch)}

    def _loss_inputs(self, batch: Batch) -> dict[str, torch.Tensor]:
        device = self.accelerator.device
        self.nothing_to_train = not batch.trained_turns
        return {
            "advantages": (batch.advantages_BC * batch.weights_BC).to(device),
            "tool_mask": batch.loss_mask_BC.to(device),
            "num_items_in_batch": torch.tensor(batch.trained_turns, device=device),
        }

    @torch.no_grad()
    def _train_logprobs(self, output: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """logprobs_BC of `completion_ids`, float32, 0 in the padding: from the layout and the attention of `compute_loss`."""
        B, C = output["completion_ids"].shape
        found = torch.zeros(B, C)
        for rows in self._own_micro_batches(range(B), _lengths(output)):
            self._hooks.check_cancelled()
            with self._hooks.lease(), causal_attention(self.model):
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
        return ranks.total(found)

    def _own_micro_batches(self, rows: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
        """Micro-batches of those `rows` that this process trains. lengths: tokens of every row of the batch."""
        own = [rows[i] for i in deal([lengths[row] for row in rows], ranks.size())[ranks.rank()]]
        return [[own[i] for i in indices] for indices in micro_batches([lengths[row] for row in own], self._micro_tokens)]

    def _prepare_inputs(self, micro_batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """TRL would make a batch here, shuffle it and cut it into pieces of equal numbers of rows."""
        return left_align(micro_batch)

    def compute_loss(self, model: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        with causal_attention(self.model), _alone(self.accelerator):
            loss: torch.Tensor = super().compute_loss(model, *args, **kwargs)
        return loss

    def training_step(self, model: Any, inputs: list[dict[str, Any]], *args: Any, **kwargs: Any) -> torch.Tensor:
        """Make the batch of a step, then forward and backward, a micro-batch at a time; rows that do not train are left out."""
        self._hooks.check_cancelled()
        model.train()
        batch = self._generate_and_score_completions(inputs)
        tokens_B, lengths = batch["tool_mask"].sum(1).tolist(), _lengths(batch)
        passes = self._own_micro_batches([b for b, tokens in enumerate(tokens_B) if tokens], lengths)
        if not passes:
            # A pass without a trained token, which takes part in the gradients' average.
            passes, tokens_B = [[min(range(len(lengths)), key=lengths.__getitem__)]], [0] * len(lengths)
            batch["tool_mask"] = torch.zeros_like(batch["tool_mask"])
        losses, weights = [], []
        for rows in passes:
            self._hooks.check_cancelled()
            joined = nullcontext() if rows is passes[-1] else self.accelerator.no_sync(model)
            # The attention around the backward pass, too: it recomputes activations.
            with self._hooks.lease(), causal_attention(self.model), joined:
                part = {key: value[rows] if value.dim() else value for key, value in batch.items()}
                losses.append(super().training_step(model, part, *args, **kwargs))
            weights.append(sum(tokens_B[b] for b in rows))
        self._average(weights)
        return torch.stack(losses).sum()

    def _average(self, weights: Sequence[int]) -> None:
        """TRL has noted one mean per micro-batch; make one over all tokens of all processes. weights: trained tokens."""
        names = ("entropy", "clip_ratio/region_mean")
        noted = [self._metrics["train"][name] for name in names]
        sums = [sum(m * w for m, w in zip(means[-len(weights) :], weights, strict=True)) for means in noted]
        *sums, tokens = ranks.total(torch.tensor([*sums, sum(weights)], dtype=torch.float64)).tolist()
        for means, value in zip(noted, sums, strict=True):
            means[-len(weights) :] = [value / max(tokens, 1)]

    def _clip_grad_norm(self, model: Any) -> Any:
        with self._hooks.lease():
            return super()._clip_grad_norm(model)

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        with checkpoints.writing(Path(self.args.output_dir)):
            super()._save_checkpoint(*args, **kwargs)

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
    """Updates under a lease of the card, reports each step before its checkpoint is written, and marks checkpoints that are
    complete."""

    def __init__(self, trainer: KernelGRPOTrainer, hooks: Hooks) -> None:
        self.trainer = trainer
        self.hooks = hooks
        self.update = ExitStack()

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self.trainer.nothing_to_train:
            # The optimiser skips parameters without a gradient; a gradient of 0 would move them on by momentum.
            kwargs["optimizer"].zero_grad(set_to_none=True)
        self.update.enter_context(self.hooks.lease())

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.update.close()

    def on_log(self, args: Any, state: Any, control: Any, logs: Mapping[str, float], **kwargs: Any) -> None:
        if "loss" in logs:  # the summary at the end of training has none
            self.trainer.record(logs, state.global_step)

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        directory = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        self.hooks.save(directory)
        if state.is_world_process_zero:
            checkpoints.seal(directory)
        if self.hooks.enough():
            control.should_training_stop = True


@contextmanager
def _alone(accelerator: Any) -> Iterator[None]:
    """Keep TRL from joining statistics over the processes, which have micro-batches of different numbers and shapes."""
    accelerator.gather = accelerator.reduce = lambda tensor, *args, **kwargs: tensor
    try:
        yield
    finally:
        del accelerator.gather, accelerator.reduce


def _lengths(batch: Mapping[str, torch.Tensor]) -> list[int]:
    """The number of tokens of each row."""
    lengths: list[int] = (batch["prompt_mask"].sum(1) + batch["completion_mask"].sum(1)).tolist()
    return lengths


def _trajectory_reward(prompts: Sequence[str], completions: Sequence[str], **columns: Any) -> list[float]:
    """TRL demands a reward function; its advantages are overwritten."""
    return [0.0] * len(prompts)
