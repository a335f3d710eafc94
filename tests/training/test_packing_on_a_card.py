"""Packed rows on a GPU: one kernel for the attention of all of them, and compiled blocks, against rows one by one in float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlkernel.policy.blocks import compile_blocks
from rlkernel.training import memory
from rlkernel.training.packing import Packed, pack, packed_attention
from tests.training.trainer_doubles import make_trainer

pytestmark = pytest.mark.gpu
LENGTHS = (300, 41, 7, 128)


def make_model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32}
    return Qwen3ForCausalLM(Qwen3Config(vocab_size=500, num_hidden_layers=3, **sizes)).cuda()


def make_rows(lengths: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.randint(3, 500, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(1)).cuda()
    return ids, (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long().cuda()


def gradients(model: Any, packed: Packed) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Hidden states and gradients of packed rows under autocast, as a trainer has them."""
    model.zero_grad()
    with packed_attention(model):
        with torch.autocast("cuda", torch.bfloat16):
            apart = {"row_bounds": packed.bounds, "longest_row": packed.longest}
            logits = model(input_ids=packed.ids_1T, position_ids=packed.position_1T, use_cache=False, **apart).logits[0]
        logits.float().square().mean().backward()
    return logits.detach(), [parameter.grad.clone() for parameter in model.parameters()]


def distance(ours: list[torch.Tensor], theirs: list[torch.Tensor]) -> float:
    return max(float((a - b).norm() / b.norm()) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("recomputed", [False, True])
def test_packed_and_compiled_rows_are_those_that_are_alone(recomputed: bool) -> None:
    plain, model = make_model(), make_model()
    if recomputed:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    model.train()
    eager: dict[tuple[int, ...], Any] = {}
    batches = (LENGTHS, LENGTHS[::-1], (64, 65))
    for lengths in batches:
        eager[lengths] = gradients(model, pack(*make_rows(lengths), make_rows(lengths)[1]))
    assert compile_blocks(model) == 3
    for lengths in batches:
        ids, mask = make_rows(lengths)
        plain.zero_grad()
        rows = [plain(input_ids=row[None, :length]).logits[0] for row, length in zip(ids, lengths, strict=True)]
        torch.cat(rows).square().mean().backward()
        exact = [parameter.grad for parameter in plain.parameters()]
        for logits, found in (eager[lengths], gradients(model, pack(ids, mask, mask))):
            torch.testing.assert_close(logits.float(), torch.cat(rows).detach(), atol=3e-2, rtol=3e-2)
            assert distance(found, exact) < 3e-2


def test_blocks_of_a_large_model_are_compiled_and_a_step_is_taken(
    tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = []
    for large in (10, 10**9):
        monkeypatch.setattr(memory, "LARGE", large)
        trainer, hooks = make_trainer(tiny_model, tiny_tokenizer, tmp_path / str(large), micro_tokens=18, learning_rate=0.0)
        trainer.train()
        facts.append(hooks.facts[0])
    assert facts[0].loss == pytest.approx(facts[1].loss, abs=1e-3)
    assert facts[0].grad_norm == pytest.approx(facts[1].grad_norm, rel=3e-2)
