"""TRL's GRPO trainer with our forward and backward passes: layout, micro-batches, loss. This file and trl_arguments.py import
trl.

TRL's own ratio of sequences gives all turns of a row the sum of their advantages. So TRL always gets one ratio per token, and
`old_for_level` makes it that of the token's turn or trajectory. Regularisers are added here: TRL's entropy bonus depends on the
micro-batches; TRL's KL knows no weights of corrections, and is not finite where a prompt has a token that the model finds
impossible. TRL projects onto the vocabulary in tiles (`add_fused_lm_head`), so that no logits of a whole micro-batch exist.

Legend: B rows, C completion positions, A completion positions of a micro-batch laid out by `left_align`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from trl import GRPOTrainer

from rlkernel.config import Run
from rlkernel.training import ranks
from rlkernel.training.hooks import Hooks
from rlkernel.training.micro_batches import causal_attention, deal, left_align, micro_batches
from rlkernel.training.minibatches import old_for_level
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
        self._latest_BA = torch.empty(0)  # log-probabilities of the latest loss, as it was laid out
        self.nothing_to_train = False
        super().__init__(**given)

    @torch.no_grad()
    def _logprobs(self, model: Any, output: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """logprobs_BC of `completion_ids`, float32, 0 in the padding: from the layout and the attention of `compute_loss`."""
        B, C = output["completion_ids"].shape
        found = torch.zeros(B, C)
        for rows in self._own_micro_batches(range(B), _lengths(output)):
            self._hooks.check_cancelled()
            with self._hooks.lease(), causal_attention(model):
                part = {key: output[key][rows] for key in ("prompt_ids", "prompt_mask", "completion_ids", "completion_mask")}
                aligned = left_align(part)
                logprobs_BA, _, _ = self._get_per_token_logps_and_entropies(
                    model,
                    torch.cat([aligned["prompt_ids"], aligned["completion_ids"]], 1),
                    torch.cat([aligned["prompt_mask"], aligned["completion_mask"]], 1),
                    aligned["completion_ids"].shape[1],
                )
                found[rows] = laid_back(logprobs_BA, part)
        return ranks.total(found)

    def _own_micro_batches(self, rows: Sequence[int], lengths: Sequence[int]) -> list[list[int]]:
        """Micro-batches of those `rows` that this process trains. lengths: tokens of every row of the batch."""
        own = [rows[i] for i in deal([lengths[row] for row in rows], ranks.size())[ranks.rank()]]
        return [[own[i] for i in indices] for indices in micro_batches([lengths[row] for row in own], self._micro_tokens)]

    def _prepare_inputs(self, micro_batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """TRL would make a batch here, shuffle it and cut it into pieces of equal numbers of rows."""
        return left_align(micro_batch)

    def compute_loss(self, model: Any, inputs: dict[str, torch.Tensor], *args: Any, **kwargs: Any) -> torch.Tensor:
        self._part = dict(inputs)
        with causal_attention(self.model), _alone(self.accelerator):
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

    def _get_per_token_logps_and_entropies(self, *args: Any, **kwargs: Any) -> Any:
        found = logprobs_BC, entropies_BC, _ = super()._get_per_token_logps_and_entropies(*args, **kwargs)
        part = self._part  # of the loss that is being computed, else empty
        if not part:
            return found
        self._latest_BA = logprobs_BC.detach()
        mask_BC = part["completion_mask"] * part["tool_mask"]
        part["entropies"], old_BC = entropies_BC, part.get("old_per_token_logps")
        if self._run.loss.beta:
            before_BC = part.get(OLD, old_BC)
            before_BC = logprobs_BC.detach() if before_BC is None else before_BC
            part["kl"] = kl_from_reference(logprobs_BC, before_BC, part["ref_per_token_logps"], mask_BC)
        if old_BC is not None:
            part["old_per_token_logps"] = old_for_level(self._run.loss.ratio, logprobs_BC, old_BC, mask_BC, part["turns"])
        return found

    def _backward(
        self, model: Any, batch: dict[str, torch.Tensor], minibatch: Sequence[int], noted_BC: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Add the gradient of a minibatch, a micro-batch at a time; rows that do not train are left out. noted_BC: where the
        log-probabilities of this process's rows are noted on the way."""
        tokens_B, lengths = batch["tool_mask"].sum(1).tolist(), _lengths(batch)
        self.nothing_to_train = not any(tokens_B[b] for b in minibatch)
        passes = self._own_micro_batches([b for b in minibatch if tokens_B[b]], lengths)
        if not passes:
            # A pass without a trained token, which takes part in the gradients' average.
            passes, tokens_B = [[min(range(len(lengths)), key=lengths.__getitem__)]], [0] * len(lengths)
            batch = {**batch, "tool_mask": torch.zeros_like(batch["tool_mask"])}
        losses = []
        for rows in passes:
            self._hooks.check_cancelled()
            joined = nullcontext() if rows is passes[-1] else self.accelerator.no_sync(model)
            # The attention around the backward pass, too: it recomputes activations.
            with self._hooks.lease(), causal_attention(self.model), joined:
                part = {key: value[rows] if value.dim() else value for key, value in batch.items()}
                losses.append(super().training_step(model, part, None))
                if noted_BC is not None:
                    noted_BC[rows] = laid_back(self._latest_BA, part)
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


def laid_back(values_BA: torch.Tensor, part: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """values_BC, float32 on the CPU, 0 in the padding, of what was computed after `left_align` of `part`."""
    prompt_B1 = part["prompt_mask"].sum(1, keepdim=True)
    # A row's completion starts where its own prompt ends; the columns A start where the shortest one does.
    column_1C = torch.arange(part["completion_mask"].shape[1], device=values_BA.device)
    column_BC = (prompt_B1 - prompt_B1.min() + column_1C).clamp(max=values_BA.shape[1] - 1)
    return (values_BA.float().gather(1, column_BC) * part["completion_mask"]).cpu()


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
