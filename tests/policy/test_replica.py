"""An engine's own copy of the weights."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.config import ROLLOUT_DTYPES
from rlkernel.policy.batched import GenerateEngine
from rlkernel.policy.engine import Request
from rlkernel.policy.hf import ROUNDINGS, open_engine
from rlkernel.policy.replica import Replica, merged, rounded
from rlkernel.policy.slots.engine import SlotEngine
from tests.policy import sampling
from tests.policy.sampling import context

ENGINES = pytest.mark.parametrize("make", [GenerateEngine, SlotEngine])
CPU = torch.device("cpu")
IDS = torch.tensor([[5, 6, 7, 8, 9]])


@torch.no_grad()
def logits(model: Any) -> torch.Tensor:
    found: torch.Tensor = model(input_ids=IDS).logits
    return found


def test_a_copy_keeps_its_weights_until_refreshed_and_its_storage_always(tiny_model: Any) -> None:
    replica = Replica(tiny_model, CPU, torch.float32)
    before = logits(tiny_model)
    assert torch.equal(logits(replica.model), before)
    places = [parameter.data_ptr() for parameter in replica.model.parameters()]
    assert not set(places) & {parameter.data_ptr() for parameter in tiny_model.parameters()}
    with torch.no_grad():
        tiny_model.model.layers[0].mlp.up_proj.weight.mul_(2.0)
    assert torch.equal(logits(replica.model), before)
    replica.refresh()
    assert torch.equal(logits(replica.model), logits(tiny_model))
    assert [parameter.data_ptr() for parameter in replica.model.parameters()] == places


def test_a_copy_in_bfloat16_rounds_weights_but_not_the_rotary_frequencies(tiny_model: Any) -> None:
    model = Replica(tiny_model, CPU, torch.bfloat16).model
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()  # tied, as in the source
    weight = tiny_model.model.layers[1].self_attn.q_proj.weight
    assert torch.equal(model.model.layers[1].self_attn.q_proj.weight, weight.to(torch.bfloat16))
    assert torch.equal(model.model.rotary_emb.inv_freq, tiny_model.model.rotary_emb.inv_freq)
    assert model.model.rotary_emb.inv_freq.dtype == torch.float32
    assert model.model.rotary_emb.inv_freq.data_ptr() != tiny_model.model.rotary_emb.inv_freq.data_ptr()


def test_a_copy_as_trained_computes_what_the_trainer_computes_under_autocast(tiny_model: Any) -> None:
    replica = Replica(tiny_model, CPU, torch.bfloat16, as_trained=True)
    kinds = {name: parameter.dtype for name, parameter in replica.model.named_parameters()}
    assert kinds["model.embed_tokens.weight"] == kinds["model.norm.weight"] == torch.float32
    assert kinds["lm_head.weight"] == kinds["model.layers.0.mlp.up_proj.weight"] == torch.bfloat16  # no longer tied
    with torch.autocast("cpu", dtype=torch.bfloat16):
        trained = logits(tiny_model)
    assert torch.equal(logits(replica.model), trained)  # outside of any context
    with torch.no_grad():
        tiny_model.model.embed_tokens.weight.mul_(1.5)
    replica.refresh()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        trained = logits(tiny_model)
    assert torch.equal(logits(replica.model), trained)


def test_what_a_trainer_did_to_its_model_is_not_copied(tiny_model: Any) -> None:
    # As accelerate does: a forward of its own, hooks, training mode.
    tiny_model.forward = lambda **kwargs: pytest.fail("the source's own forward was called")
    tiny_model.model.register_forward_hook(lambda *_: pytest.fail("the source's hook was called"))
    tiny_model.train()
    replica = Replica(tiny_model, CPU, torch.float32)
    assert logits(replica.model).isfinite().all()
    assert not replica.model.training and not any(p.requires_grad for p in replica.model.parameters())
    assert tiny_model.training and all(p.requires_grad for p in tiny_model.parameters())


class _Lora(nn.Module):
    """What PEFT's LoRA layer looks like from outside, so that the merge is tested without PEFT too."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base_layer = base
        self.lora_A = nn.ModuleDict({"default": nn.Linear(base.in_features, 2, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(2, base.out_features, bias=False)})
        self.scaling = {"default": 3.0}
        self.active_adapters = ["default"]
        self.merged = False

    def get_delta_weight(self, adapter: str) -> torch.Tensor:
        B, A = self.lora_B[adapter].weight, self.lora_A[adapter].weight
        return self.scaling[adapter] * B @ A  # type: ignore[no-any-return, operator]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.base_layer(x) + 3.0 * self.lora_B["default"](self.lora_A["default"](x))
        return found


def test_adapters_are_merged_under_the_names_of_a_plain_model(tiny_model: Any) -> None:
    names = [name for name, _ in tiny_model.named_parameters()]
    for layer in tiny_model.model.layers:
        layer.self_attn.q_proj = _Lora(layer.self_attn.q_proj)
    assert sorted(name for name, _ in merged(tiny_model)) == sorted(names)
    replica = Replica(tiny_model, CPU, torch.float32)
    torch.testing.assert_close(logits(replica.model), logits(tiny_model), atol=2e-6, rtol=0)
    with torch.no_grad():
        tiny_model.model.layers[1].self_attn.q_proj.lora_B["default"].weight.add_(0.5)
    assert not torch.allclose(logits(replica.model), logits(tiny_model), atol=1e-4)
    replica.refresh()
    torch.testing.assert_close(logits(replica.model), logits(tiny_model), atol=2e-6, rtol=0)


@pytest.mark.parametrize("change", [{"merged": True}, {"active_adapters": []}])
def test_adapters_that_are_merged_already_or_off_do_not_count(change: dict[str, Any], tiny_model: Any) -> None:
    layer = tiny_model.model.layers[0].self_attn
    layer.q_proj = _Lora(layer.q_proj)
    vars(layer.q_proj).update(change)
    weights = dict(merged(tiny_model))
    assert torch.equal(weights["model.layers.0.self_attn.q_proj.weight"], layer.q_proj.base_layer.weight)


def test_adapters_that_cannot_be_merged_are_refused(tiny_model: Any) -> None:
    tiny_model.model.layers[0].self_attn.q_proj = _Lora(tiny_model.model.layers[0].self_attn.q_proj)
    tiny_model.model.layers[0].self_attn.q_proj.use_dora = {"default": True}
    with pytest.raises(ValueError, match="only plain LoRA"):
        Replica(tiny_model, CPU, torch.float32)


def test_peft_models_are_merged(tiny_model: Any) -> None:
    peft = pytest.importorskip("peft", reason="adapter tests (pip install peft)")
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM", init_lora_weights=False)
    adapted = peft.get_peft_model(tiny_model, config)
    replica = Replica(adapted, CPU, torch.float32)
    assert not any("lora" in name for name, _ in replica.model.named_parameters())
    torch.testing.assert_close(logits(replica.model), logits(adapted), atol=1e-5, rtol=0)
    # Without a copy, the engine samples from the adapted model itself.
    requests = [Request(0, tuple(range(3, 20)), 1, 12)]
    samples = [SlotEngine(adapted, frozenset(), 1.0, copy=copy).advance(requests, 12)[0] for copy in (False, True)]
    assert samples[0].token_ids == samples[1].token_ids


def test_an_engine_with_a_copy_samples_from_the_weights_of_its_last_refresh(tiny_model: Any) -> None:
    engine = SlotEngine(tiny_model, frozenset(), 1.0, copy=True)
    request = Request(0, tuple(range(3, 20)), 1, 12)
    first = engine.advance([request], 12)[0]
    with torch.no_grad():
        tiny_model.model.layers[0].self_attn.v_proj.weight.mul_(3.0)
    assert engine.advance([request], 12)[0].logprobs == pytest.approx(first.logprobs, abs=2e-5)
    engine.refresh()
    after = engine.advance([request], 12)[0]
    expected = SlotEngine(tiny_model, frozenset(), 1.0).advance([request], 12)[0]
    assert after.token_ids == expected.token_ids
    assert after.logprobs == pytest.approx(expected.logprobs, abs=2e-5)
    assert after.logprobs != pytest.approx(first.logprobs, abs=1e-2)


def test_linear_weights_are_rounded_row_by_row_and_nothing_else(tiny_model: Any) -> None:
    replica = Replica(tiny_model, CPU, torch.float32, rounding=torch.float8_e4m3fn)
    mine, theirs = replica.model.model, tiny_model.model
    weight, rough = theirs.layers[0].mlp.up_proj.weight, mine.layers[0].mlp.up_proj.weight
    assert not torch.equal(rough, weight) and torch.equal(rough, rounded(weight, torch.float8_e4m3fn))
    # Three bits of mantissa: at most 2^-4 of a value, and a subnormal step of 2^-9 of a row whose largest is 448.
    assert ((rough - weight).abs() <= weight.abs() / 16 + weight.abs().amax(1, keepdim=True) / 448 / 2**9).all()
    assert torch.equal(mine.embed_tokens.weight, theirs.embed_tokens.weight)
    assert torch.equal(mine.norm.weight, theirs.norm.weight)
    head = replica.model.lm_head.weight
    assert torch.equal(head, rounded(tiny_model.lm_head.weight, torch.float8_e4m3fn)) and not torch.equal(
        head, mine.embed_tokens.weight
    )


def test_rounding_to_bfloat16_is_the_cast_and_zeros_stay() -> None:
    weight = torch.randn(4, 8)
    assert torch.equal(rounded(weight, torch.bfloat16), weight.bfloat16().float())
    assert torch.equal(rounded(torch.zeros(2, 3), torch.float8_e4m3fn), torch.zeros(2, 3))
    # 0.3 * 448 = 134.4 lies between 128 and 144; 128 / 448 = 0.2857
    assert rounded(torch.tensor([[1.0, 0.3]]), torch.float8_e4m3fn)[0].tolist() == pytest.approx([1.0, 128 / 448])
    # A row's scale is its own: beside a row of 100s, the first stays as it is.
    two = rounded(torch.tensor([[1.0, 0.3], [100.0, 30.0]]), torch.float8_e4m3fn)
    assert two.flatten().tolist() == pytest.approx([1.0, 128 / 448, 100.0, 100 * 128 / 448])


def test_the_names_of_precisions_are_the_types_they_say() -> None:
    assert {"auto": None, "bfloat16": torch.bfloat16, "float8": torch.float8_e4m3fn} == ROUNDINGS
    assert set(ROUNDINGS) == set(ROLLOUT_DTYPES)


@pytest.mark.parametrize("engine", ["slots", "generate"])
def test_engines_sample_from_rounded_weights(engine: str, tiny_model: Any) -> None:
    request = Request(0, (5, 6, 7), 1, 8)
    sampled = []
    for rounding in (None, torch.float8_e4m3fn):
        opened = open_engine(engine, tiny_model, frozenset(), 1.0, slots=2, copy=False, rounding=rounding)
        opened.refresh()
        (sample,) = opened.advance([request], 8) or opened.advance([], 8)
        sampled.append(sample.logprobs)
    assert sampled[0][0] != sampled[1][0]
    assert sampled[0][0] == pytest.approx(sampled[1][0], abs=0.1)


@ENGINES
def test_bfloat16_weights_are_sampled_from_where_they_train(make: Any, tiny_model: Any) -> None:
    model = tiny_model.to(torch.bfloat16).train()
    engine = make(model, frozenset(), 1.0, slots=3)
    theirs = {name: parameter.data_ptr() for name, parameter in model.named_parameters()}
    assert {name: parameter.data_ptr() for name, parameter in engine.model.named_parameters()} == theirs
    assert engine.model is not model and not engine.model.training and model.training
    model.forward = None  # what a trainer does to its model is not what samples
    requests = [Request(i, context(9 + i, i), seed=i, budget=6) for i in range(2)]
    before = sampling.run(engine, requests)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    engine.refresh()
    after = sampling.run(engine, requests)
    del model.forward
    for request in requests:
        assert after[request.key] != before[request.key]
        expected = sampling.fresh_logprobs(model.eval(), request.context_ids, after[request.key].token_ids, 1.0)
        # Logits of bfloat16 have 8 bits.
        torch.testing.assert_close(torch.tensor(after[request.key].logprobs), expected, atol=0.1, rtol=0)
    model.get_input_embeddings().weight.data = model.get_input_embeddings().weight.data.clone()
    with pytest.raises(RuntimeError, match=r"trainer's model\.embed_tokens\.weight is not where it was"):
        engine.refresh()


@ENGINES
def test_bfloat16_weights_are_copied_where_that_is_asked_for(make: Any, tiny_model: Any) -> None:
    model = tiny_model.to(torch.bfloat16)
    engine = make(model, frozenset(), 1.0, copy=True)
    mine, theirs = (set(map(torch.Tensor.data_ptr, m.parameters())) for m in (engine.model, model))
    assert not mine & theirs
