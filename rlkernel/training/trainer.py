"""TRL's GRPO trainer with our rollouts, our advantages per turn, and our masks.

TRL provides the optimiser, the clipped token-level loss, checkpoints and accelerate. We provide, for each step:

- the trajectories, through `rollout_func` (TRL pads them and would reward them; its own advantages are overwritten);
- `advantages` (B, C): the credit of each sampled token times its weight. This multiplies the token's loss, clipped or not, by the
  weight, because no weight is negative;
- `tool_mask` (B, C): 1 on the sampled tokens that were not rejected;
- `num_items_in_batch`: the number of turns that have such a token. TRL's `dapo` loss divides the sum over tokens by it, so that
  the loss is a token sum per turn, averaged over turns (arXiv 2602.05885 aggregates so), whatever the rows per micro-batch.
  Weights above 0 do not change the denominator.

A batch may make several updates (`Run.updates`, `Run.epochs`). To transformers they are one step: `training_step` makes all but
the last, which transformers makes itself, so that rows, the learning rate and checkpoints go by batches. The log-probabilities
before the first update are computed once, as TRL's `old_per_token_logps`. With one update the importance ratio is 1, also where
the samples are old (`Run.staleness`), which only corrections such as TIS or MRS answer; TRL then uses the detached
log-probabilities of the same forward pass instead of a second one. So it does for the loss `reinforce`, whatever the updates.

With several processes (`rlkernel.training.ranks`), every one has the whole batch and makes the same masks and advantages from it,
but only its share of the rows goes through the model. Gradients are joined in the last backward pass of an update, or in each
where weights are in pieces (`rlkernel.training.sharding`); log-probabilities and statistics once per step. The loss has one
denominator: TRL multiplies a process's by their number, because gradients are averaged over them.

Legend: B rows, P prompt positions, C completion positions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import datasets
import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import PrinterCallback

from rlkernel.config import Run
from rlkernel.policy.blocks import compile_blocks
from rlkernel.policy.replica import whole
from rlkernel.policy.slots.decoding import one_thread_if_small
from rlkernel.rollout import derive_seed
from rlkernel.runs import checkpoints
from rlkernel.training import ranks, sharding
from rlkernel.training.batch import Batch, Tokens, assemble, needs_ratios, pad_rows, turn_numbers
from rlkernel.training.eight_bit_adamw import clip_gradients
from rlkernel.training.hooks import Hooks
from rlkernel.training.loss_trainer import OLD, LossTrainer
from rlkernel.training.memory import MICRO_TOKENS
from rlkernel.training.minibatches import minibatches
from rlkernel.training.preflight import plan_here
from rlkernel.training.recorder import Recorder
from rlkernel.training.step import Draft, Passed, passed
from rlkernel.training.trl_arguments import CLIPPED, Reference, optimiser, share_of_rate, silence, training_arguments


class KernelGRPOTrainer(LossTrainer):
    """TRL's trainer with our batches, as the module's docstring says.

    micro_tokens: at most so many tokens in one forward pass, or one longer row; it does not change what is computed."""

    lr_scheduler: Any

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
        self._tokens: Tokens | None = None
        self._passed: Passed | None = None  # for `record`, which transformers calls after the last update
        self._several = run.updates * run.epochs > 1
        self._norms: list[float] = []
        self._reference = Reference(model, run)
        # TRL counts steps by it; what is in a batch is the hooks' affair.
        dataset = datasets.Dataset.from_dict({"prompt": [""] * (run.steps * run.prompts_per_step * ranks.size())})
        silence()
        planned = plan_here(run, model.config, micro_tokens)
        super().__init__(
            run,
            hooks,
            planned.micro_tokens,
            model=model,
            reward_funcs=_trajectory_reward,
            args=training_arguments(run, directory, checkpoint_every, recomputed=planned.recomputed),
            train_dataset=dataset,
            processing_class=tokenizer,
            rollout_func=self._rows,
            callbacks=[Recorder(self, hooks)],
        )
        self.remove_callback(PrinterCallback)
        if planned.compiled:
            compile_blocks(model)
        self.optimizer_cls_and_kwargs = optimiser(run)  # TRL does not pass it on

    def create_accelerator_and_postprocess(self) -> None:
        """Make TRL's accelerator, which shards where it is configured to."""
        super().create_accelerator_and_postprocess()
        if sharding.active():
            sharding.prepare(self)

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """Make the learning rate of every step. A checkpoint has the step and the rate, and no function: a run that goes on takes
        the function from here."""
        if self.lr_scheduler is None:
            rate = functools.partial(share_of_rate, self._run.optimiser, num_training_steps)
            self.lr_scheduler = LambdaLR(optimizer or self.optimizer, rate)
            self._created_lr_scheduler = True
        return self.lr_scheduler

    def train(self, *args: Any, **kwargs: Any) -> Any:
        # The number of threads decides in which order sums are added: it must not depend on who trains beside this run.
        with ranks.noticed(), one_thread_if_small(self.model):
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
        """TRL's seam: what its loss takes."""
        return self._draft(inputs).inputs

    def _draft(self, inputs: list[dict[str, Any]]) -> Draft:
        """Sample the step's trajectories, have TRL pad them, and put our masks and advantages in the place of its own."""
        run, step = self._run, self.state.global_step
        groups = self._hooks.rollout(step)
        tokens = self._tokens = pad_rows(groups, self._tokenizer.pad_token_id)
        with self._hooks.lease():  # padding and copies to the card
            output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        wanted = needs_ratios(run.corrections) or run.staleness > 0 or self._several
        old_logprobs_BC = self._logprobs(self.model, output) if wanted else None
        batch = assemble(
            groups,
            tokens,
            advantage=run.advantage,
            credit=run.credit,
            gamma=run.gamma,
            decode=lambda ids: str(self._tokenizer.decode(list(ids), skip_special_tokens=True)),
            corrections=run.corrections,
            train_logprobs_BC=old_logprobs_BC,
            generator=torch.Generator().manual_seed(derive_seed(run.seed, "rejection", step)),
        )
        taken = {**output, **self._loss_inputs(tokens, batch, output, old_logprobs_BC)}
        return Draft(groups, tokens, batch, old_logprobs_BC, taken)

    def _loss_inputs(
        self, tokens: Tokens, batch: Batch, output: Mapping[str, torch.Tensor], old_logprobs_BC: torch.Tensor | None
    ) -> dict[str, torch.Tensor]:
        """What the loss takes beside TRL's tensors of tokens."""
        inputs = {
            "advantages": batch.advantages_BC * batch.weights_BC,
            "tool_mask": batch.loss_mask_BC,
            "num_items_in_batch": torch.tensor(batch.trained_turns),
            "turns": turn_numbers(tokens),
        }
        if self._several:
            assert old_logprobs_BC is not None
            inputs[OLD if self._run.loss.kind == "reinforce" else "old_per_token_logps"] = old_logprobs_BC
        if self._run.loss.beta:
            inputs["weights"] = batch.weights_BC
            with self._reference.of(self.accelerator.unwrap_model(self.model)) as reference:
                inputs["ref_per_token_logps"] = self._logprobs(reference, output)
        return {name: value.to(self.accelerator.device) for name, value in inputs.items()}

    def training_step(self, model: Any, inputs: list[dict[str, Any]], *args: Any, **kwargs: Any) -> torch.Tensor:
        """Make the batch of a step and all of its updates but the last, for which transformers finds the gradients here."""
        self._hooks.check_cancelled()
        model.train()
        draft = self._draft(inputs)
        turn_norms = self._turn_norms(model, draft.inputs) if self._run.turn_gradients else ()
        self._weights.clear()
        self._norms.clear()
        seed = derive_seed(self._run.seed, "minibatches", self.state.global_step)
        sizes = [len(group.trajectories) for group in draft.groups]
        losses: list[torch.Tensor] = []
        # The last epoch has every row once, in one process. What its passes find was found anyway.
        latest_BC = torch.zeros(draft.batch.loss_mask_BC.shape)
        cut = minibatches(sizes, self._run.updates, self._run.epochs, seed)
        for number, rows in enumerate(cut, start=1):
            if losses:
                self._update(model)
            last = number > len(cut) - self._run.updates
            losses.append(self._backward(model, draft.inputs, rows, latest_BC if last else None))
        self._passed = passed(draft, ranks.total(latest_BC), turn_norms, several=self._several)
        self._average()
        return torch.stack(losses).mean()

    def _update(self, model: Any) -> None:
        """Clip and take a step of the optimiser, as transformers does after `training_step`."""
        norm = self._clip_grad_norm(model) if self.args.max_grad_norm > 0 else None
        self._get_grad_norm(model, grad_norm=norm)
        self.callback_handler.on_pre_optimizer_step(self.args, self.state, self.control)
        self.optimizer.step()
        self.callback_handler.on_optimizer_step(self.args, self.state, self.control)
        model.zero_grad()

    def _turn_norms(self, model: Any, batch: dict[str, torch.Tensor]) -> tuple[float, ...]:
        """The norm of each turn's part of the batch's gradient, before the first update."""
        norms = []
        for turn in range(1, int(batch["turns"].max()) + 1):
            alone = {**batch, "tool_mask": batch["tool_mask"] * (batch["turns"] == turn)}
            self._backward(model, alone, range(len(batch["turns"])))
            with self._hooks.lease():
                norm = self._clip(model, math.inf)
            norms.append(float(norm) / self._run.updates)
            model.zero_grad()
        for name in self._noted:
            self._metrics["train"][name].clear()
        return tuple(norms)

    def _clip_grad_norm(self, model: Any) -> Any:
        with self._hooks.lease():
            return self._clip(model, self.args.max_grad_norm)

    def _clip(self, model: Any, largest: float) -> Any:
        if self._run.weights == "bfloat16":
            return clip_gradients(model.parameters(), largest)
        return whole(self.accelerator.clip_grad_norm_(model.parameters(), largest))

    def _get_grad_norm(self, *args: Any, **kwargs: Any) -> Any:
        norm = super()._get_grad_norm(*args, **kwargs)
        self._norms.append(float(norm))
        return norm

    def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        with checkpoints.writing(Path(self.args.output_dir)):
            super()._save_checkpoint(*args, **kwargs)

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """A checkpoint of a run is not a publication."""

    def record(self, logs: Mapping[str, float], step: int) -> None:
        """Join TRL's numbers of a finished step with ours."""
        assert self._passed is not None
        norm = sum(self._norms) / len(self._norms)
        facts = self._passed.facts(logs, step=step, grad_norm=norm, clipped=CLIPPED[self._run.loss.kind])
        self._hooks.step_done(facts)


def _trajectory_reward(prompts: Sequence[str], completions: Sequence[str], **columns: Any) -> list[float]:
    """TRL demands a reward function; its advantages are overwritten."""
    return [0.0] * len(prompts)
