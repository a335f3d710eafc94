"""Model shapes as numbers, and random weights in them: what the benchmarks of generation, training and the loop share.

Time and memory do not depend on the weights' values. The tokenizer is the shipped small one: a benchmark needs it for prompts and
feedback only, and the models keep the full size of their own vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers import AutoModelForCausalLM, Qwen3Config

from rlkernel.policy.small import load_small

_QWEN3: Mapping[str, Any] = {
    "vocab_size": 151_936,
    "head_dim": 128,
    "num_key_value_heads": 8,
    "max_position_embeddings": 40_960,
    "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
}


def _qwen3(width: int, feed_forward: int, layers: int, heads: int, **changes: Any) -> dict[str, Any]:
    sizes = {"hidden_size": width, "intermediate_size": feed_forward, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {**_QWEN3, **sizes, **changes}


SHAPES: Mapping[str, Mapping[str, Any]] = {
    "tiny": _qwen3(64, 128, 2, 4, head_dim=16, num_key_value_heads=2, vocab_size=2048),
    "40m": _qwen3(512, 1536, 10, 8, head_dim=64, num_key_value_heads=4, vocab_size=16_384),
    "0.6b": _qwen3(1024, 3072, 28, 16),
    "1.7b": _qwen3(2048, 6144, 28, 16),
    "4b": _qwen3(2560, 9728, 36, 32),
    "8b": _qwen3(4096, 12_288, 36, 32, tie_word_embeddings=False),
    "14b": _qwen3(5120, 17_408, 40, 40, tie_word_embeddings=False),
}
"""Keyword arguments of `Qwen3Config`. From 0.6b on: the published Qwen3 models; `tiny` is for tests."""


def random_model(name: str, device: str | torch.device, dtype: torch.dtype, *, seed: int = 0) -> Any:
    """Make a model of that shape with random weights, on `device` and in `dtype`, without a copy elsewhere or in another
    precision."""
    torch.manual_seed(seed)
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(Qwen3Config(**SHAPES[name]), dtype=dtype, attn_implementation="sdpa")
    model.config.eos_token_id = model.generation_config.eos_token_id = None
    return model.eval()


class EndlessTokenizer:
    """The shipped tokenizer for a model of another vocabulary, whose completions all run to their full length: its end of
    sequence is an id that the model does not have."""

    def __init__(self, vocabulary: int) -> None:
        self._tokenizer = load_small()[1]
        self.eos_token_id = vocabulary

    def get_vocab(self) -> dict[str, int]:
        return {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)
