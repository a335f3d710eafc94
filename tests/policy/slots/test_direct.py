"""Qwen3's decode step without Transformers around it: the same samples, to the bit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from rlkernel.policy.engine import Request, Sample
from rlkernel.policy.slots import decode_step
from rlkernel.policy.slots.direct import can_decode_directly, logits_of_step
from rlkernel.policy.slots.engine import SlotEngine


def make_model(*, bias: bool = False) -> Any:
    """A Qwen3 with fewer key heads than query heads, and norms that are not 1."""
    torch.manual_seed(3)
    config = Qwen3Config(
        vocab_size=97, hidden_size=48, intermediate_size=80, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
        head_dim=16, max_position_embeddings=256, attention_bias=bias, pad_token_id=0, eos_token_id=1, bos_token_id=None,
    )  # fmt: skip
    model = Qwen3ForCausalLM(config)
    for name, parameter in model.named_parameters():
        if "norm" in name:
            parameter.data.uniform_(0.5, 2.0)
    return model


def sample(model: Any, *, copy: bool) -> list[Sample]:
    """Samples of different length, of contexts of different length, in two rounds."""
    engine = SlotEngine(model, frozenset({1}), 1.0, slots=8, copy=copy)
    found: list[Sample] = []
    for turn in range(2):
        waiting = [Request(8 * turn + i, tuple(range(2, 7 + i)), seed=8 * turn + i, budget=10 + 5 * i) for i in range(6)]
        while waiting or engine.active:
            found += engine.advance(waiting, 4)
            waiting = []
    return sorted(found, key=lambda one: one.key)


@pytest.mark.parametrize(("copy", "bias"), [(False, False), (True, False), (False, True)])
def test_samples_are_those_of_the_model_itself_to_the_bit(monkeypatch: pytest.MonkeyPatch, copy: bool, bias: bool) -> None:
    model = make_model(bias=bias)
    used: list[int] = []

    def counted(*args: Any) -> torch.Tensor:
        used.append(len(args[2]))
        return logits_of_step(*args)

    monkeypatch.setattr(decode_step, "logits_of_step", counted)
    ours = sample(model, copy=copy)
    assert len(used) > 40
    monkeypatch.setattr(decode_step, "can_decode_directly", lambda model: False)
    assert ours == sample(model, copy=copy)
    assert len(ours) == 12 and len({len(one.token_ids) for one in ours}) > 3


def test_other_models_and_types_are_left_to_transformers() -> None:
    model = make_model()
    assert can_decode_directly(model)
    assert not can_decode_directly(model.to(torch.bfloat16))

    class Other(Qwen3ForCausalLM):  # type: ignore[misc]
        pass

    assert not can_decode_directly(Other(model.config))
