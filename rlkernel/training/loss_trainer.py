"""TRL's GRPO trainer with our forward and backward passes: packed rows, micro-batches, loss. This file and trl_arguments.py
import trl.

Who calls whom in one step, ours marked by *:

    transformers' train
      training_step*                                        the batch, and its updates (`trainer.py`)
        _draft*  ->  TRL _generate_and_score_completions  ->  _rows*     padded tokens of our trajectories
                 ->  _logprobs*                                          log pi_old, where it is needed
        _backward*, for each minibatch                      micro-batches of this process's rows
          TRL training_step  ->  compute_loss*              adds the regularisers to
            TRL _compute_loss                               the loss: ratio, clipping, mean over tokens
              _get_per_token_logps_and_entropies*           the forward pass; leaves entropies and the KL in `_part`
        _update*, between minibatches                       transformers makes the last one

TRL's own ratio of sequences gives all turns of a row the sum of their advantages. So TRL always gets one ratio per token, and
`old_for_level` makes it that of the token's turn or trajectory. Regularisers are added here: TRL's entropy bonus depends on the
micro-batches; TRL's KL knows no weights of corrections, and is not finite where a prompt has a token that the model finds
impossible. TRL projects onto the vocabulary in tiles (`add_fused_lm_head`), so that no logits of a whole micro-batch exist. On a
GPU only the tokens that the loss needs are projected.

Legend: B rows, C completion positions, L positions of a padded row, T tokens of a micro-batch packed by `pack`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from trl import GRPOTrainer

from rlkernel.config import Run
from rlkernel.training import ranks, sharding
from rlkernel.training.hooks import Hooks
from rlkernel.training.micro_batches import deal, micro_batches
from rlkernel.training.minibatches import old_for_level
from rlkernel.training.packing import pack, packed_attention, packs
from rlkernel.training.trl_arguments import CLIPPED

OLD = "old_without_ratio"
"""What holds the log-probabilities before the first update where the loss has no ratio, and the KL has one."""


class LossTrainer(GRPOTrainer):  # type: ignore[misc]
    """The part of our trainer that sees tensors alone: log-probabilities, and the gradient of a minibatch of rows."""

    def __init__(self, run: Run, hooks: Hooks, micro_tokens: int, **given: Any) -> None:
        self._run = run
        self._hooks = hooks
        self._micro_tokens = micro_tokens
        self._noted = ("entropy", CLIPPED[run.loss.kind], *(("kl",) if run.loss.beta else ()))
        self._weights: list[int] = []
        self._part: dict[str, torch.Tensor] = {}
        self._latest_BC = torch.empty(0)  # log-probabilities of the latest loss
        self.nothing_to_train = False
        super().__init__(**given)

    @torch.no_grad()
    def _logprobs(self, model: Any, output: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """logprobs_BC of the sampled tokens, float32, and 0 elsewhere: from the rows and the attention of `compute_loss`."""
        found = torch.zeros(output["completion_ids"].shape)
        for rows in self._own_micro_batches(range(len(found)), _lengths(output)):
            self._hooks.check_cancelled()
            with self._hooks.lease(), packed_attention(model):
                part = _part(output, rows)
                ids_BL = torch.cat([part["prompt_ids"], part["completion_ids"]], 1)
                mask_BL = torch.cat([part["prompt_mask"], part["completion_mask"]], 1)
                logprobs_BC = self._scores(model, ids_BL, mask_BL, part["tool_mask"])[0]
                found[rows] = logprobs_BC[: len(rows)].float().cpu()
        return ranks.total(found)

    def _scores(
        self, model: Any, ids_BL: torch.Tensor, mask_BL: torch.Tensor, scored_BC: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Log-probabilities and entropies (B, C) of the scored tokens, and 0 elsewhere. The reference has no entropies."""
        packed = pack(ids_BL, mask_BL, scored_BC)
        apart = {"row_bounds": packed.bounds, "longest_row": packed.longest} if packs(self.model) else {}
        with self.accelerator.autocast():
            found = model(
                input_ids=packed.ids_1T,
                position_ids=packed.position_1T,
                shift_labels=packed.label_1T,
                fused_lm_head=True,
                **apart,
            )
        return packed.unpack(found.log_probs), None if found.entropy is None else packed.unpack(found.entropy)

    def _own_micro_batches(self, rows: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
        """Micro-batches of those `rows` that this process trains; an empty one is a pass that only takes part. lengths: tokens of
        every row of the batch."""
        dealt = [[rows[i] for i in own] for own in deal([lengths[row] for row in rows], ranks.size())]
        budget = self._micro_tokens if packs(self.model) else 0  # rows that cannot be packed go alone
        each = [[[own[i] for i in part] for part in micro_batches([lengths[row] for row in own], budget)] for own in dealt]
        # Who computes with pieces of weights computes as often as the others.
        missing = max(map(len, each)) - len(each[ranks.rank()]) if sharding.active() else 0
        return each[ranks.rank()] + [[] for _ in range(missing)]

    def _prepare_inputs(self, micro_batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """TRL would make a batch here, shuffle it and cut it into pieces of equal numbers of rows."""
        return micro_batch

    def compute_loss(self, model: Any, inputs: dict[str, torch.Tensor], *args: Any, **kwargs: Any) -> torch.Tensor:
        self._part = dict(inputs)
        with packed_attention(self.model), _alone(self.accelerator):
            loss: torch.Tensor = super().compute_loss(model, self._part, *args, **kwargs)
        part, self._part = self._part, {}
        mask_BC = part["completion_mask"] * part["tool_mask"]
        turns = part["num_items_in_batch"].clamp(min=1) / ranks.size()
        if self._run.loss.entropy:
            loss = loss - self._run.loss.entropy * (part["entropies"] * mask_BC).sum() / turns
        if self._run.loss.beta:
            loss = loss + self._run.loss.beta * (part["kl"] * part["weights"]).sum() / turns
            self._metrics["train"]["kl"].append(float(part["kl"].detach().sum() / mask_BC.sum().clamp(min=1)))
        # A minibatch has its share of the batch's turns as its denominator.
        return loss * self._run.updates

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, logits_to_keep: int, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor | None, None]:
        """What TRL's loss asks for, of the loss's tokens alone; elsewhere log-probabilities are 0, old ones too."""
        part = self._part
        mask_BC = part["completion_mask"] * part["tool_mask"]
        logprobs_BC, entropies_BC = self._scores(model, input_ids, attention_mask, mask_BC)
        assert entropies_BC is not None
        self._latest_BC = logprobs_BC.detach()
        part["entropies"], old_BC = entropies_BC, part.get("old_per_token_logps")
        if self._run.loss.beta:
            before_BC = part.get(OLD, old_BC)
            before_BC = logprobs_BC.detach() if before_BC is None else before_BC
            part["kl"] = kl_from_reference(logprobs_BC, before_BC, part["ref_per_token_logps"], mask_BC)
        if old_BC is not None:
            kept_BC = torch.where(mask_BC.bool(), old_BC, 0.0)
            part["old_per_token_logps"] = old_for_level(self._run.loss.ratio, logprobs_BC, kept_BC, mask_BC, part["turns"])
        return logprobs_BC, entropies_BC, None

    def _backward(
        self, model: Any, batch: dict[str, torch.Tensor], minibatch: Sequence[int], noted_BC: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Add the gradient of a minibatch, a micro-batch at a time; rows that do not train are left out. noted_BC: where the
        log-probabilities of this process's rows are noted on the way."""
        tokens_B, lengths = batch["tool_mask"].sum(1).tolist(), _lengths(batch)
        self.nothing_to_train = not any(tokens_B[b] for b in minibatch)
        # Whoever has no row takes part in the gradients' average.
        passes = self._own_micro_batches([b for b in minibatch if tokens_B[b]], lengths) or [[]]
        losses = []
        for number, rows in enumerate(passes, start=1):
            self._hooks.check_cancelled()
            joins = number == len(passes) or sharding.active()
            joined = nullcontext() if joins else self.accelerator.no_sync(model)
            # The attention around the backward pass, too: it recomputes activations.
            with self._hooks.lease(), packed_attention(self.model), joined:
                losses.append(super().training_step(model, _part(batch, rows), None))
                if noted_BC is not None:
                    noted_BC[rows] = self._latest_BC[: len(rows)].float().cpu()
            self._weights.append(sum(tokens_B[b] for b in rows))
        return torch.stack(losses).sum()

    def _average(self) -> None:
        """TRL has noted one mean per micro-batch; make one over all tokens of all updates and processes."""
        noted, weights = [self._metrics["train"][name] for name in self._noted], self._weights
        sums = [sum(m * w for m, w in zip(means[-len(weights) :], weights, strict=True)) for means in noted]
        *sums, tokens = ranks.total(torch.tensor([*sums, sum(weights)], dtype=torch.float64)).tolist()
        for means, value in zip(noted, sums, strict=True):
            means[-len(weights) :] = [value / max(tokens, 1)]


def kl_from_reference(
    logprobs_BC: torch.Tensor, old_BC: torch.Tensor, reference_BC: torch.Tensor, mask_BC: torch.Tensor
) -> torch.Tensor:
    """The KL of each trained token's policy from the reference, r (rho - 1 - log rho), and 0 elsewhere: kl_BC.

    rho = pi_ref / pi, and r = pi / pi_old of the token alone, which makes the gradient unbiased where pi_old has sampled
    (arXiv 2512.02556, section 3.1). mask_BC: 1 for trained tokens; what the other log-probabilities are has no influence.
    """
    kept_BC = mask_BC.bool()
    # Before exp and not after it: 0 times an infinite gradient is no number.
    d_BC = torch.where(kept_BC, reference_BC - logprobs_BC, 0.0)
    r_BC = torch.where(kept_BC, logprobs_BC - old_BC, 0.0).exp()
    return r_BC * (d_BC.exp() - 1 - d_BC)


@contextmanager
def _alone(accelerator: Any) -> Iterator[None]:
    """Keep TRL from joining statistics over the processes, which have micro-batches of different numbers and shapes."""
    accelerator.gather = accelerator.reduce = lambda tensor, *args, **kwargs: tensor
    try:
        yield
    finally:
        del accelerator.gather, accelerator.reduce


def _part(batch: Mapping[str, Any], rows: Sequence[int]) -> dict[str, Any]:
    """The micro-batch of some rows; of no rows, the shortest row without a token that counts."""
    if rows:
        return {key: value[rows] if torch.is_tensor(value) and value.dim() else value for key, value in batch.items()}
    lengths = _lengths(batch)
    part = _part(batch, [min(range(len(lengths)), key=lengths.__getitem__)])
    return {**part, "tool_mask": torch.zeros_like(part["tool_mask"])}


def _lengths(batch: Mapping[str, torch.Tensor]) -> list[int]:
    """The number of tokens of each row."""
    lengths: list[int] = (batch["prompt_mask"].sum(1) + batch["completion_mask"].sum(1)).tolist()
    return lengths
