"""Bfloat16 weights on a GPU: updates as on the CPU, and a captured sampler that reads the weights that were updated."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from rlkernel.policy.engine import Request
from rlkernel.policy.slots.engine import SlotEngine
from rlkernel.training.eight_bit_adamw import SLICE, EightBitAdamW, state_bytes
from tests.policy import sampling
from tests.policy.sampling import context
from tests.training.test_eight_bit_adamw import movement

pytestmark = pytest.mark.gpu


def test_a_card_moves_weights_as_float32_does() -> None:
    generator = torch.Generator().manual_seed(0)
    start = (torch.randn(128, 256, generator=generator) * 0.02).bfloat16()
    mean = torch.randn(128, 256, generator=generator)
    exact = movement(start.float(), mean, lambda parameters: torch.optim.AdamW(parameters, lr=1e-6, weight_decay=0.0))
    moved = movement(start.cuda(), mean.cuda(), lambda parameters: EightBitAdamW(parameters, lr=1e-6, seed=3)).cpu()
    assert float((moved * exact).sum() / exact.square().sum()) == pytest.approx(1.0, abs=0.05)
    assert float(torch.cosine_similarity(moved.flatten(), exact.flatten(), 0)) == pytest.approx(0.76, abs=0.04)


def test_a_large_weight_needs_no_workspace_of_its_size() -> None:
    weight = torch.nn.Parameter(torch.zeros(8 * SLICE + 1000, dtype=torch.bfloat16, device="cuda"))
    weight.grad = torch.ones_like(weight)
    optimiser = EightBitAdamW([weight], lr=1e-3, seed=0)
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    optimiser.step()
    assert torch.cuda.max_memory_allocated() - before < state_bytes(weight.numel()) + 40 * SLICE + 2**21
    # The gradient of 2 bytes is gone, moments of 2 have come.
    assert torch.cuda.memory_allocated() - before == pytest.approx(state_bytes(weight.numel()) - 2 * weight.numel(), abs=2**21)
    # Adam's first update is the rate itself, in the mean of the roundings.
    assert float(weight.detach().float().mean()) == pytest.approx(-1e-3, rel=1e-3)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_captured_step_samples_from_the_weights_that_were_updated(compiled: bool, tiny_model: Any) -> None:
    model = tiny_model.to(torch.bfloat16).cuda().train()
    engine = SlotEngine(model, frozenset(), 1.0, slots=4, compiled=compiled)
    requests = [Request(i, context(9 + i, i), seed=i, budget=12) for i in range(3)]
    before = sampling.run(engine, requests)
    optimiser = EightBitAdamW(model.parameters(), lr=0.05, seed=0)
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimiser.step()
    engine.refresh()
    after = sampling.run(engine, requests)
    plain = copy.deepcopy(model).cpu().float().eval()
    for request in requests:
        assert after[request.key] != before[request.key]
        expected = sampling.fresh_logprobs(plain, request.context_ids, after[request.key].token_ids, 1.0)
        torch.testing.assert_close(torch.tensor(after[request.key].logprobs), expected, atol=0.3, rtol=0)
