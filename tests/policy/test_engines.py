"""The back ends beside the slots, and which one is chosen."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import MistralConfig, MistralForCausalLM, Qwen3Config, Qwen3ForCausalLM

from rlkernel.policy.batched import GenerateEngine
from rlkernel.policy.engine import Engine, Request, Sample
from rlkernel.policy.hf import open_engine, open_policy
from rlkernel.policy.slots.engine import SlotEngine

STOPS = frozenset(range(30))  # a tenth of the vocabulary


def context(length: int, seed: int) -> tuple[int, ...]:
    return tuple(torch.randint(3, 250, (length,), generator=torch.Generator().manual_seed(seed)).tolist())


def run(engine: Engine, requests: list[Request]) -> dict[int, Sample]:
    samples = engine.advance(requests, 8)
    while engine.active:
        samples += engine.advance([], 8)
    return {sample.key: sample for sample in samples}


def opened(engine: str, model: Any) -> Engine:
    return open_engine(engine, model, STOPS, 1.0, slots=4, copy=False)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_generate_and_slots_draw_the_same_samples(tiny_model: Any, temperature: float) -> None:
    requests = [Request(i, context(9 + 4 * i, i), seed=i, budget=5 + 3 * i) for i in range(7)]
    slots = run(SlotEngine(tiny_model, STOPS, temperature), requests)
    generate = run(GenerateEngine(tiny_model, STOPS, temperature, slots=3), requests)
    assert {sample.stop for sample in slots.values()} == {"stop", "length"}
    for key, sample in slots.items():
        assert generate[key].token_ids == sample.token_ids
        assert generate[key].stop == sample.stop
        assert generate[key].logprobs == pytest.approx(sample.logprobs, abs=2e-5)


def test_generate_with_a_copy_keeps_its_weights_until_refreshed(tiny_model: Any) -> None:
    engine = GenerateEngine(tiny_model.train(), frozenset(), 1.0, copy=True)
    request = Request(0, context(12, 0), seed=0, budget=6)
    first = run(engine, [request])[0]
    with torch.no_grad():
        tiny_model.model.layers[0].self_attn.v_proj.weight.mul_(3.0)
    assert run(engine, [request])[0].logprobs == first.logprobs
    engine.refresh()
    assert run(engine, [request])[0].logprobs != pytest.approx(first.logprobs, abs=1e-2)
    assert tiny_model.training


def sliding(**sizes: Any) -> list[Any]:
    window = Qwen3Config(**sizes, head_dim=8, use_sliding_window=True, sliding_window=16, max_window_layers=1)
    return [Qwen3ForCausalLM(window), MistralForCausalLM(MistralConfig(**sizes, sliding_window=16))]


def test_auto_takes_slots_where_the_attention_is_plain(tiny_model: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(opened("auto", tiny_model), SlotEngine)
    assert isinstance(opened("generate", tiny_model), GenerateEngine)
    assert capsys.readouterr().err == ""
    sizes = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 2, "num_key_value_heads": 1}
    for model in sliding(**sizes):
        assert isinstance(opened("auto", model), GenerateEngine)
        assert "sampling with `generate`, which is slower than slots: " in capsys.readouterr().err
        with pytest.raises(ValueError, match=r"engine 'slots' cannot sample from this model: .*sliding"):
            opened("slots", model)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_unknown_engine_is_refused(tiny_model: Any, tiny_tokenizer: Any) -> None:
    with pytest.raises(ValueError, match="engine is 'fast': use one of auto, slots, generate"):
        async with open_policy(tiny_model, tiny_tokenizer, max_new_tokens=4, engine="fast"):
            pass
