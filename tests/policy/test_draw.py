"""Drawing by inverting the distribution."""

from __future__ import annotations

import pytest
import torch

from rlkernel.policy.draw import BLOCK, TOGETHER, draw, masses_kernel
from tests.policy.slots.test_attention import compiled


def plain(logits_BV: torch.Tensor, u_B: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """One cumulative sum over the vocabulary, all float64."""
    logprob_BV = (logits_BV.double() / temperature).log_softmax(-1)
    cdf_BV = logprob_BV.exp().cumsum(-1)
    ids_B1 = torch.searchsorted(cdf_BV, u_B[:, None] * cdf_BV[:, -1:], right=True)
    return ids_B1[:, 0], logprob_BV.gather(1, ids_B1)[:, 0]


def test_two_levels_find_what_one_finds() -> None:
    generator = torch.Generator().manual_seed(0)
    for vocabulary in (7, BLOCK, BLOCK + 1, 5000):
        logits = 4 * torch.randn(500, vocabulary, generator=generator)
        u = torch.rand(500, generator=generator, dtype=torch.float64)
        for temperature in (1.0, 0.7):
            ids, logprobs = draw(logits, u, temperature)
            right_ids, right_logprobs = plain(logits, u, temperature)
            # A number within rounding (1e-7) of a boundary may fall on either side: none of 500 does, with this seed.
            assert torch.equal(ids, right_ids)
            torch.testing.assert_close(logprobs.double(), right_logprobs, atol=5e-6, rtol=0)


def test_tokens_without_weight_are_never_drawn() -> None:
    # exp(-200) is zero in float32. All mass is on tokens 3, 300 and 999, with blocks of nothing before, between and after.
    logits = torch.full((5, 2000), -200.0)
    logits[:, [3, 300, 999]] = 0.0
    third = 1 / 3
    u = torch.tensor([0.0, third - 1e-12, third + 1e-12, 1 - 1e-9, 1 - 2**-53], dtype=torch.float64)
    ids, logprobs = draw(logits, u, 1.0)
    assert ids.tolist() == [3, 3, 300, 999, 999]
    torch.testing.assert_close(logprobs, torch.full((5,), -1.0986123))  # log(1/3)


def test_rounding_at_the_end_of_a_block_finds_no_token_without_weight() -> None:
    # Sums and cumulative sums round differently. The largest number below 1, and nothing but zeros behind the first 200 tokens.
    logits = torch.full((500, BLOCK), -1000.0)
    logits[:, :200] = 6 * torch.randn(500, 200, generator=torch.Generator().manual_seed(0))
    ids, logprobs = draw(logits, torch.full((500,), 1 - 2**-53, dtype=torch.float64), 1.0)
    assert (ids < 200).all()
    assert (logprobs > -40).all()


def test_logits_that_are_not_finite_show() -> None:
    ids, logprobs = draw(torch.full((2, 300), float("nan")), torch.tensor([0.1, 0.9], dtype=torch.float64), 1.0)
    assert logprobs.isnan().all()
    assert (ids < 300).all()


def test_impossible_tokens_and_blocks_have_no_mass() -> None:
    logits = torch.full((4, 3 * BLOCK), float("-inf"))
    logits[:, BLOCK + 5], logits[:, BLOCK + 9] = 1.0, 1.0
    ids, logprobs = draw(logits, torch.tensor([0.0, 0.49, 0.51, 1 - 2**-53], dtype=torch.float64), 1.0)
    assert ids.tolist() == [BLOCK + 5, BLOCK + 5, BLOCK + 9, BLOCK + 9]
    torch.testing.assert_close(logprobs, torch.full((4,), -0.6931472))  # log(1/2)


def test_the_kernel_compiles_for_sm_90() -> None:
    types = {"logits_ptr": "*bf16", "top_ptr": "*fp32", "mass_ptr": "*fp32", "temperature": "fp32"}
    assert ".entry" in compiled(masses_kernel, {"TOGETHER": TOGETHER, "BLOCK": BLOCK}, types, stages=1).asm["ptx"]


@pytest.mark.gpu
def test_a_gpu_finds_what_the_cpu_finds() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = (4 * torch.randn(200, 151_936, generator=generator)).bfloat16()
    u = torch.rand(200, generator=generator, dtype=torch.float64)
    ids, logprobs = draw(logits.cuda(), u.cuda(), 1.0)
    right_ids, right_logprobs = draw(logits, u, 1.0)
    assert torch.equal(ids.cpu(), right_ids)
    torch.testing.assert_close(logprobs.cpu(), right_logprobs, atol=1e-5, rtol=0)
