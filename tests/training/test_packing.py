"""Packed rows: the layout by hand, and every method of the registry against rows that are padded and masked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Gemma3ForCausalLM, Gemma3TextConfig

from algorithms import ADVANTAGES, CORRECTIONS, CREDITS
from rlkernel.settings import Loss
from rlkernel.training.loss_trainer import LossTrainer
from rlkernel.training.packing import IGNORED, PACKED, pack, packed_attention, packs
from rlkernel.types import Evaluation, Group, Status, Trajectory
from tests.training.trainer_doubles import PROBLEMS, batch_of, make_groups, make_trainer

LOSSES = {
    "clip": Loss(clip_low=0.01, clip_high=0.01),
    "cispo": Loss(kind="cispo", clip_low=0.01, clip_high=0.01),
    "reinforce": Loss(kind="reinforce"),
    "ratios of turns": Loss(ratio="turn"),
    "ratios of sequences": Loss(ratio="sequence"),
    "kl and entropy": Loss(beta=0.3, entropy=0.1),
}
LENIENT: dict[str, dict[str, Any]] = {
    "mrs": {"low": 0.0, "high": math.inf, "veto": None},
    "mis": {"low": 0.0, "high": math.inf},
    "veto": {"least": 1e-30},
}
"""Scripted log-probabilities are far from the model's: what corrections need to keep some turns."""
CASES: dict[str, dict[str, Any]] = {
    **{f"advantage {name}": {"advantage": method()} for name, method in ADVANTAGES.items()},
    **{f"credit {name}": {"credit": method()} for name, method in CREDITS.items()},
    **{f"correction {name}": {"corrections": (method(**LENIENT.get(name, {})),)} for name, method in CORRECTIONS.items()},
    **{f"loss {name}": {"loss": loss, "epochs": 2} for name, loss in LOSSES.items()},
}


def test_rows_follow_each_other_and_know_their_own_next_tokens() -> None:
    # Rows 1 2 3 | 5 and 4 | 6 7, padded on the left and on the right; of the second, only the last token is wanted.
    ids_BL = torch.tensor([[1, 2, 3, 5, 0], [0, 0, 4, 6, 7]])
    mask_BL = torch.tensor([[1, 1, 1, 1, 0], [0, 0, 1, 1, 1]])
    packed = pack(ids_BL, mask_BL, torch.tensor([[1, 1], [0, 1]]))
    assert packed.ids_1T.tolist() == [[1, 2, 3, 5, 4, 6, 7]]
    assert packed.position_1T.tolist() == [[0, 1, 2, 3, 0, 1, 2]]
    assert packed.label_1T.tolist() == [[IGNORED, IGNORED, 5, IGNORED, IGNORED, 7, IGNORED]]
    assert packed.bounds.tolist() == [0, 4, 7] and packed.bounds.dtype == torch.int32 and packed.longest == 4
    # What is known at position t is about the token at t + 1.
    assert packed.unpack(torch.arange(7.0)[None]).tolist() == [[2.0, 0.0], [0.0, 5.0]]


def test_rows_are_computed_as_if_they_were_alone(tiny_model: Any) -> None:
    ids = torch.randint(3, 250, (3, 20), generator=torch.Generator().manual_seed(0))
    mask = (torch.arange(20) < torch.tensor([[20], [11], [4]])).long()
    packed = pack(ids, mask, mask)
    with packed_attention(tiny_model):
        assert tiny_model.config._attn_implementation == PACKED
        apart = {"row_bounds": packed.bounds, "longest_row": packed.longest}
        got = tiny_model(input_ids=packed.ids_1T, position_ids=packed.position_1T, **apart).logits[0]
    assert tiny_model.config._attn_implementation == "sdpa"
    alone = [tiny_model(input_ids=row[None, :length]).logits[0] for row, length in zip(ids, (20, 11, 4), strict=True)]
    torch.testing.assert_close(got, torch.cat(alone), atol=1e-5, rtol=1e-5)


def padded(
    self: LossTrainer, model: Any, ids_BL: torch.Tensor, mask_BL: torch.Tensor, scored_BC: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `LossTrainer._scores` says, from padded rows with a mask, and from logits that are made whole."""
    C = scored_BC.shape[1]
    with plain_attention(model):
        position_BL = (mask_BL.cumsum(1) - 1).clamp(min=0)
        logits = model(input_ids=ids_BL, attention_mask=mask_BL, position_ids=position_BL).logits[:, -C - 1 : -1]
    logprobs_BCV = (logits / self._run.temperature).log_softmax(-1)
    logprobs_BC = logprobs_BCV.gather(2, ids_BL[:, -C:, None])[..., 0]
    entropies_BC = -(logprobs_BCV.exp() * logprobs_BCV).sum(-1)
    return logprobs_BC * scored_BC, entropies_BC * scored_BC


@contextmanager
def plain_attention(model: Any) -> Iterator[None]:
    before, model.config._attn_implementation = model.config._attn_implementation, "sdpa"
    try:
        yield
    finally:
        model.config._attn_implementation = before


def judged_groups(step: int) -> tuple[Group, ...]:
    """Scripted groups in which the first trajectory's answers are correct, for credits that look at verdicts."""
    right = Evaluation(Status.CORRECT, "", speedup=2.0, coverage=1.0)
    return tuple(
        replace(group, trajectories=(Trajectory(group.problem, tuple(replace(t, evaluation=right) for t in first.turns)), *rest))
        for group in make_groups(PROBLEMS)
        for first, *rest in [group.trajectories]
    )


def gradients(model: Any, tokenizer: Any, directory: Path, changes: dict[str, Any]) -> tuple[float, list[torch.Tensor]]:
    trainer, hooks = make_trainer(model, tokenizer, directory, micro_tokens=18, temperature=0.9, **changes)
    hooks.rollout = judged_groups  # type: ignore[method-assign]
    batch = batch_of(trainer)
    if "old_per_token_logps" in batch:  # as if the weights had moved, so that ratios are not 1
        noise = torch.rand(batch["advantages"].shape, generator=torch.Generator().manual_seed(0))
        batch["old_per_token_logps"] = batch["old_per_token_logps"] + 0.2 * noise - 0.1
    model.zero_grad()
    loss = float(trainer._backward(model, batch, range(4)))
    found = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    model.zero_grad()
    return loss, found


@pytest.mark.parametrize("case", CASES)
def test_losses_and_gradients_are_those_of_padded_rows(
    case: str, tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, packed = gradients(tiny_model, tiny_tokenizer, tmp_path / "packed", CASES[case])
    monkeypatch.setattr(LossTrainer, "_scores", padded)
    expected, found = gradients(tiny_model, tiny_tokenizer, tmp_path / "padded", CASES[case])
    assert loss == pytest.approx(expected, abs=1e-5)
    assert max(float(gradient.abs().max()) for gradient in found) > 1e-3
    for ours, theirs in zip(packed, found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=1e-4)


def test_rows_of_models_that_cannot_be_packed_go_alone(tiny_tokenizer: Any, tmp_path: Path) -> None:
    """A sliding window would see the row before."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
    config = Gemma3TextConfig(vocab_size=len(tiny_tokenizer), num_hidden_layers=2, sliding_window=3, **sizes)
    config.layer_types = ["sliding_attention", "full_attention"]
    model = Gemma3ForCausalLM(config)
    assert not packs(model)
    trainer, hooks = make_trainer(model, tiny_tokenizer, tmp_path, micro_tokens=64)
    columns: list[int] = []
    model.model.embed_tokens.register_forward_hook(lambda module, args, output: columns.append(output.shape[1]))
    trainer.train()
    assert columns == [9, 9, 6, 5] and hooks.facts[0].grad_norm > 0
