"""A script that test_attention runs in Triton's interpreter: the kernels against plain attention and plain sums, then the engine
with the kernel."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rlkernel.policy.draw import BLOCK, masses, masses_on_gpu
from rlkernel.policy.engine import Engine, Request, Sample
from rlkernel.policy.slots.attention import decode_attention
from rlkernel.policy.slots.cache import held
from rlkernel.policy.slots.engine import SlotEngine


def worst_difference(H: int, G: int, D: int, splits: int, dtype: torch.dtype) -> float:
    """Over lanes whose slots hold nothing, one position, exactly one block, and more; two idle lanes share the last slot."""
    S, P, K, slots = 6, 64, 4, [3, 0, 2, 1, 4, 6, 6]
    length_S = torch.tensor([0, 1, 64, 150, 199, 7, 0], dtype=torch.int32)
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    keys, values = random(S * K + 1, G, P, D), random(S * K + 1, G, P, D)
    # The pages of a slot are anywhere; those that it does not need, and all of the idle one, are the last.
    table_SK = torch.cat([torch.randperm(S * K, generator=generator).view(S, K), torch.full((1, K), S * K)])
    table_SK[0, 1:] = table_SK[1, 1:] = S * K
    # As a model makes them: not contiguous.
    q, k, v = (random(len(slots), 1, heads, D).transpose(1, 2) for heads in (H, G, G))
    before = keys.clone(), values.clone()
    out = decode_attention(q, k, v, keys, values, table_SK, torch.tensor(slots), length_S, D**-0.5, splits)
    worst = 0.0
    for lane, slot in enumerate(slots[:5]):
        past = int(length_S[slot])
        for cached, new in zip(before, (k, v), strict=True):
            cached[table_SK[slot, past // P], :, past % P] = new[lane, :, 0]
        rows = (held(cached, table_SK[slot : slot + 1], past + 1)[0] for cached in before)
        k_all, v_all = (row.float().repeat_interleave(H // G, 0) for row in rows)
        right = torch.nn.functional.scaled_dot_product_attention(q[lane].float(), k_all, v_all)[:, 0]
        worst = max(worst, float((out[lane, 0].float() - right).abs().max()))
    assert torch.isfinite(out).all()
    assert torch.equal(keys[:-1], before[0][:-1]) and torch.equal(values[:-1], before[1][:-1])
    return worst


def masses_difference() -> float:
    """The largest difference of the masses of blocks, where the vocabulary ends within a block and blocks are impossible."""
    logits = 4 * torch.randn(3, 40 * BLOCK + 7, generator=torch.Generator().manual_seed(0))
    logits[1, : 3 * BLOCK] = float("-inf")
    logits[2, 5] = float("nan")
    (top, mass), (kernel_top, kernel_mass) = masses(logits, 0.7), masses_on_gpu(logits, 0.7)
    assert kernel_top.shape == top.shape == (3, 41)
    assert bool(kernel_mass[2, 0].isnan()) and bool(mass[2, 0].isnan())
    assert torch.equal(kernel_mass[1, :3], torch.zeros(3)) and torch.equal(top[:, 1:], kernel_top[:, 1:])
    return float((kernel_mass[:, 1:] - mass[:, 1:]).abs().max())


def run(engine: Engine, requests: list[Request]) -> dict[int, Sample]:
    samples = engine.advance(requests, 4)
    while engine.active:
        samples += engine.advance([], 4)
    return {sample.key: sample for sample in samples}


def engine_difference() -> float:
    """Two turns of four requests in three slots, as on a GPU: few pages, padded lanes, the host looks every four tokens."""
    torch.manual_seed(0)
    model: Any = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=50,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=256,
        )
    ).eval()
    # 64 positions are 2 * 64 * 16 * 4 bytes: one is scratch, and two that reach 129 positions want 6.
    few = 6 * 8192
    plain = SlotEngine(model, frozenset(), 1.0, slots=3, kernels=False)
    kernels = SlotEngine(model, frozenset(), 1.0, slots=3, kernels=True, page=64, cache_bytes=few)
    kernels.look_every = 10**9
    requests = [Request(i, tuple(3 + j % 40 for j in range(7 + 40 * i)), i, budget) for i, budget in enumerate((130, 125, 4, 5))]
    worst = 0.0
    for _ in range(2):
        left, right = run(plain, requests), run(kernels, requests)
        for key, sample in left.items():
            assert right[key].token_ids == sample.token_ids and right[key].stop == sample.stop
            worst = max(worst, *(abs(a - b) for a, b in zip(sample.logprobs, right[key].logprobs, strict=True)))
        requests = [Request(r.key, (*r.context_ids, *left[r.key].token_ids, 7, 8), r.seed + 9, 3) for r in requests]
    return worst


if __name__ == "__main__":
    cases = [(4, 2, 16, 1, "float32"), (6, 2, 48, 2, "float32"), (8, 1, 64, 4, "float16")]
    found = {str(case): worst_difference(*case[:4], getattr(torch, case[4])) for case in cases}
    json.dump({"kernel": found, "engine": engine_difference(), "masses": masses_difference()}, sys.stdout)
