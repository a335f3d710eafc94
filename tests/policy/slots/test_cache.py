"""Keys and values in slots: where they go, what attention reads of them, and which models fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from transformers import LlamaConfig, LlamaForCausalLM

from rlkernel.policy.slots.cache import DecodePlan, PrefillPlan, SlotCache, bytes_per_position, slot_runs, unsupported

CPU = torch.device("cpu")
CONFIG = SimpleNamespace(
    num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=32, head_dim=8
)  # H = 4, G = 2, D = 8


def cache(slots: int, positions: int) -> SlotCache:
    return SlotCache(CONFIG, slots, positions, torch.float32, CPU, kernels=False, opaque=False)


def filled(slots: int, positions: int) -> SlotCache:
    """A cache in which keys are slot + position / 100 in the first layer, and values the negative of that."""
    made = cache(slots, positions)
    number_SP = torch.arange(slots + 1)[:, None] + torch.arange(positions) / 100
    made.keys[0][:] = number_SP[:, None, :, None]
    made.values[0][:] = -number_SP[:, None, :, None]
    return made


def test_a_cache_has_a_scratch_slot_more() -> None:
    made = cache(3, 16)
    assert len(made.keys) == len(made.values) == 2
    assert made.keys[0].shape == made.values[1].shape == (4, 2, 16, 8)
    assert made.positions == 16


def test_what_stays_moves_to_the_first_slots_and_the_rest_is_empty() -> None:
    made = filled(3, 4)
    made.resize(6, 2, stay=[2, 0])
    assert made.positions == 6 and made.keys[0].shape == (3, 2, 6, 8)
    expected = torch.tensor([[2.00, 2.01, 2.02, 2.03, 0, 0], [0.00, 0.01, 0.02, 0.03, 0, 0], [0] * 6])
    torch.testing.assert_close(made.keys[0][:, 1, :, 5], expected)
    torch.testing.assert_close(made.values[0][:, 0, :, 0], -expected)


def test_shared_positions_are_copied_and_no_more() -> None:
    made = filled(3, 4)
    made.share([0, 0], [1, 2], length=2)
    expected = torch.tensor([[0.00, 0.01, 0.02, 0.03], [0.00, 0.01, 1.02, 1.03], [0.00, 0.01, 2.02, 2.03]])
    torch.testing.assert_close(made.keys[0][:3, 0, :, 0], expected)
    torch.testing.assert_close(made.values[0][:3, 0, :, 0], -expected)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def test_a_prefill_stores_what_is_no_padding_and_attends_causally() -> None:
    made = cache(3, 8)
    q, k, v = random(2, 4, 5, 8), random(2, 2, 5, 8), random(2, 2, 5, 8) + 1
    # Row 0 has five tokens for slot 2, row 1 three for slot 0.
    real = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7])
    slots, positions = torch.tensor([2] * 5 + [0] * 3), torch.tensor([0, 1, 2, 3, 4, 0, 1, 2])
    made.begin(PrefillPlan(real, slots, positions, torch.tensor([2, 0]), None))
    made.prefill(*(torch.zeros_like(t) for t in (q, k, v)), 8**-0.5)  # the first layer
    out = made.prefill(q, k, v, 8**-0.5)
    assert torch.equal(made.keys[1][2, :, :5], k[0]) and torch.equal(made.values[1][0, :, :3], v[1, :, :3])
    assert not made.keys[1][0, :, 3:].any() and not made.keys[1][1].any() and not made.keys[0].any()
    for row, length in ((0, 5), (1, 3)):
        keys, values = (t[row, :, :length].repeat_interleave(2, 0) for t in (k, v))
        right = sdpa(q[row, :, :length], keys, values, is_causal=True)
        torch.testing.assert_close(out[row, :length], right.transpose(0, 1))


def test_a_later_prefill_attends_to_what_the_slot_holds() -> None:
    made = cache(1, 8)
    k, v, q = random(1, 2, 6, 8), random(1, 2, 6, 8) + 1, random(1, 4, 6, 8)
    first = PrefillPlan(torch.arange(4), torch.zeros(4, dtype=torch.long), torch.arange(4), torch.tensor([0]), None)
    made.begin(first)
    made.prefill(q[:, :, :4], k[:, :, :4], v[:, :, :4], 0.5)
    mask = (torch.arange(8) <= torch.tensor([4, 5])[:, None])[None, None]
    made.begin(PrefillPlan(torch.arange(2), torch.zeros(2, dtype=torch.long), torch.tensor([4, 5]), torch.tensor([0]), mask))
    out = made.prefill(q[:, :, 4:], k[:, :, 4:], v[:, :, 4:], 0.5)
    right = sdpa(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), is_causal=True, scale=0.5)
    torch.testing.assert_close(out, right[:, :, 4:].transpose(1, 2))


def test_a_decode_step_stores_the_new_token_and_attends_to_all_before_it() -> None:
    made, lengths = cache(3, 8), torch.tensor([4, 2, 0, 5])
    for tensor in (*made.keys, *made.values):
        tensor.copy_(random(*tensor.shape))
    before = made.keys[0].clone(), made.values[0].clone()
    slots = torch.tensor([0, 1, 3])
    q, k, v = random(3, 4, 1, 8), random(3, 2, 1, 8), random(3, 2, 1, 8) + 1
    made.plan = DecodePlan(slots, lengths, slot_runs([0, 1, 3], [4, 2, 5], torch.float32))
    out = made.decode(q, k, v, 0.25, layer=0)
    assert out.shape == (3, 1, 4, 8)
    for lane, slot in enumerate(slots.tolist()):
        past = int(lengths[slot])
        keys, values = (
            torch.cat([held[slot, :, :past], new[lane]], 1).repeat_interleave(2, 0)
            for held, new in zip(before, (k, v), strict=True)
        )
        torch.testing.assert_close(out[lane, 0], sdpa(q[lane], keys, values, scale=0.25)[:, 0])
        assert torch.equal(made.keys[0][slot, :, past], k[lane, :, 0])
    assert torch.equal(made.keys[0][2], before[0][2])


def test_neighbouring_slots_are_one_run_with_a_mask_where_lengths_differ() -> None:
    first, second = slot_runs([0, 1, 3], [4, 2, 5], torch.float32)
    # New tokens stand at positions 4 and 2: five positions, of which lane 1 sees the first three.
    assert (first.start, first.end, first.first_slot, first.positions) == (0, 2, 0, 5)
    assert first.mask is not None and first.mask.shape == (2, 1, 1, 5)
    assert first.mask[:, 0, 0].tolist() == [[0.0] * 5, [0.0, 0.0, 0.0, float("-inf"), float("-inf")]]
    assert (second.start, second.end, second.first_slot, second.positions, second.mask) == (2, 3, 3, 6, None)
    (alike,) = slot_runs([1, 2], [7, 7], torch.float32)
    assert alike.mask is None


def test_a_handle_is_free_again_when_its_cache_is_gone() -> None:
    one, two = cache(1, 4), cache(1, 4)
    assert one.handle != two.handle
    freed = one.handle
    del one
    assert cache(1, 4).handle <= freed


def test_bytes_of_a_position() -> None:
    # Keys and values, 2 layers, 2 heads of 8: 64 numbers.
    assert bytes_per_position(CONFIG, torch.float32) == 256
    assert bytes_per_position(CONFIG, torch.bfloat16) == 128
    # Without a head size of its own, 32 / 4 = 8 again; without key heads of their own, as many as query heads.
    plain = SimpleNamespace(num_hidden_layers=2, num_attention_heads=4, hidden_size=32)
    assert bytes_per_position(plain, torch.float32) == 512


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layer_types": ["full_attention", "sliding_attention"]}, "its layers are full_attention, sliding_attention"),
        ({"sliding_window": 16}, "it attends to a sliding window"),
        ({"attn_logit_softcapping": 50.0}, "its configuration has attn_logit_softcapping"),
    ],
)
def test_a_model_that_does_not_fit_is_told_why(change: dict[str, Any], reason: str) -> None:
    sizes: dict[str, Any] = {"vocab_size": 50, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2}
    model = LlamaForCausalLM(LlamaConfig(**sizes, num_attention_heads=2, num_key_value_heads=1))
    assert unsupported(model) is None
    for name, value in change.items():
        setattr(model.config, name, value)
    assert unsupported(model) == reason
