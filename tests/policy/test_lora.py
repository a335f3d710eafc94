"""Adapters: what is trained in which precision, and that a step trains nothing else."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from rlkernel.errors import UsageError
from rlkernel.policy.load import add_lora, load_model


@pytest.fixture
def saved(tiny_model: Any, tiny_tokenizer: Any, tmp_path: Path) -> str:
    tiny_model.save_pretrained(tmp_path)
    tiny_tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


def dtypes(model: Any, trains: bool) -> set[torch.dtype]:
    return {parameter.dtype for parameter in model.parameters() if parameter.requires_grad == trains}


def test_adapters_are_float32_over_frozen_bfloat16(saved: str) -> None:
    model, _ = load_model(saved, lora_rank=4, lora_alpha=8.0)
    assert (dtypes(model, True), dtypes(model, False)) == ({torch.float32}, {torch.bfloat16})
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    # Two halves for each of q, k, v, o, gate, up and down in each of the two layers; not the output projection.
    assert len(trained) == 2 * 7 * 2 and all("lora_" in name for name in trained)
    layer = model.get_base_model().model.layers[0].self_attn.q_proj
    assert layer.scaling["default"] == 8.0 / 4
    assert layer.lora_A["default"].weight.shape == (4, 64)


def test_without_lora_everything_trains_in_float32(saved: str) -> None:
    model, _ = load_model(saved)
    assert (dtypes(model, True), dtypes(model, False)) == ({torch.float32}, set())


def test_the_small_model_takes_adapters() -> None:
    model, tokenizer = load_model("small", lora_rank=2)
    assert (dtypes(model, True), dtypes(model, False)) == ({torch.float32}, {torch.bfloat16})
    assert tokenizer.eos_token == "<|im_end|>"


def test_adapters_do_not_change_the_model_at_first_nor_the_random_state(tiny_model: Any) -> None:
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        before = tiny_model(input_ids=ids).logits
        state = torch.random.get_rng_state()
        adapted = add_lora(tiny_model, 4, 8.0)
        assert torch.equal(torch.random.get_rng_state(), state)
        assert torch.equal(adapted(input_ids=ids).logits, before)


def test_a_missing_package_is_one_line(saved: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(UsageError, match=r"Run\.lora_rank needs the package peft: pip install 'rlkernel\[lora\]'"):
        load_model(saved, lora_rank=4)
