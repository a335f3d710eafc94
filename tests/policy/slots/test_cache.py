"""Keys and values in slots: where they go, what attention reads of them, and which models fit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as sdpa
from transformers import LlamaConfig, LlamaForCausalLM

from rlkernel.policy.slots.cache import SlotCache, bytes_per_position, held, unsupported
from rlkernel.policy.slots.pages import Room
from rlkernel.policy.slots.plans import PrefillPlan

CPU = torch.device("cpu")
CONFIG = SimpleNamespace(
    num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=32, head_dim=8
)  # H = 4, G = 2, D = 8


def cache(room: Room, slots: int) -> SlotCache:
    return SlotCache(CONFIG, slots, room, torch.float32, CPU, kernels=False, opaque=False)


def filled(room: Room, positions: list[int]) -> SlotCache:
    """A cache of slots with so many positions, whose keys in the first layer are slot + position / 100, and values the negative
    of that. The first slots get their pages last, so that nothing is in order."""
    made = cache(room, len(positions))
    slots = list(range(len(positions)))[::-1]
    for slot in slots:
        made.pages.take(slot, positions[slot])
    made.write(slots)
    for slot in slots:
        for position in range(positions[slot]):
            page, offset = made.place(torch.tensor([slot]), torch.tensor([position]))
            made.keys[0][page, :, offset] = slot + position / 100
            made.values[0][page, :, offset] = -slot - position / 100
    return made


def read(made: SlotCache, slot: int, positions: int) -> tuple[list[float], list[float]]:
    """What the first layer holds for a slot, of one head and one place each."""
    row = made.table_SK[slot : slot + 1, : made.room.needed(positions)]
    keys, values = (held(tensors[0], row, positions)[0, 1, :, 5] for tensors in (made.keys, made.values))
    return [round(x, 2) for x in keys.tolist()], [round(x, 2) for x in values.tolist()]


def test_a_cache_has_a_scratch_page_more_which_is_everybodys_until_it_has_another() -> None:
    made = cache(Room(pages=5, size=4, positions=12), 3)
    assert len(made.keys) == len(made.values) == 2
    assert made.keys[0].shape == made.values[1].shape == (6, 2, 4, 8)
    assert made.nbytes == 2 * 2 * 6 * 2 * 4 * 8 * 4  # layers, keys and values, pages, heads, positions, size, bytes
    assert made.table_SK.tolist() == [[5, 5, 5]] * 4
    made.pages.take(1, 5)
    made.write([1])
    assert made.table_SK.tolist() == [[5, 5, 5], [0, 1, 5], [5, 5, 5], [5, 5, 5]]


@pytest.mark.parametrize("room", [Room(9, 4, 16), Room(3, 16, 16)])
def test_what_slots_hold_stays_in_a_larger_cache_and_a_smaller_one(room: Room) -> None:
    made = filled(room, [7, 4, 12])
    expected = {slot: [round(slot + p / 100, 2) for p in range(n)] for slot, n in enumerate((7, 4, 12))}
    larger = Room(12, 4, 24) if room.size == 4 else Room(3, 24, 24)
    made.resize(larger)
    assert made.room == larger and made.keys[0].shape[0] == larger.pages + 1
    for slot, keys in expected.items():
        assert read(made, slot, len(keys)) == (keys, [-key for key in keys])
    made.pages.release(1)
    smaller = Room(sum(map(len, made.pages.held)), larger.size, larger.positions)
    made.resize(smaller)
    for slot in (0, 2):
        assert read(made, slot, len(expected[slot]))[0] == expected[slot]
    assert made.table_SK[1].tolist() == [smaller.pages] * smaller.width and made.pages.free == 0


def test_shared_positions_are_copied() -> None:
    made = filled(Room(9, 4, 16), [9, 9, 9])
    made.share([0, 0], [1, 2], length=6)
    own = [0.00, 0.01, 0.02, 0.03, 0.04, 0.05]
    for slot in range(3):
        keys, values = read(made, slot, 9)
        assert keys[:6] == own and values[:6] == [-x for x in own]
        assert keys[8] == round(slot + 0.08, 2)  # on a page of its own
    whole = filled(Room(3, 12, 12), [9, 9, 9])
    whole.share([0], [2], length=6)
    assert read(whole, 2, 9)[0] == [*own, 2.06, 2.07, 2.08]


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


ROOMS = pytest.mark.parametrize("room", [Room(9, 2, 8), Room(4, 8, 8)])
"""Pages of two positions, and slots of one page."""


def opened(room: Room) -> SlotCache:
    """A cache of four slots with eight positions each, or as many as there are pages for, from the last to the first."""
    made = cache(room, 4)
    for slot, positions in ((3, 6), (2, 5), (1, 3), (0, 2)) if room.size == 2 else ((3, 8), (2, 8), (1, 8), (0, 8)):
        made.pages.take(slot, positions)
    made.write(range(4))
    return made


@ROOMS
def test_a_prefill_stores_what_is_no_padding_and_attends_causally(room: Room) -> None:
    made = opened(room)
    q, k, v = random(2, 4, 5, 8), random(2, 2, 5, 8), random(2, 2, 5, 8) + 1
    # Row 0 has five tokens for slot 2, row 1 three for slot 1.
    real = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7])
    place = made.place(torch.tensor([2] * 5 + [1] * 3), torch.tensor([0, 1, 2, 3, 4, 0, 1, 2]))
    made.begin(PrefillPlan(real, *place, made.table_SK[[2, 1]], None))
    made.prefill(torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v), 8**-0.5)  # the first layer
    out = made.prefill(q, k, v, 8**-0.5)
    keys, values = (held(tensors[1], made.table_SK[[2, 1]], 5) for tensors in (made.keys, made.values))
    assert torch.equal(keys[0], k[0]) and torch.equal(values[1, :, :3], v[1, :, :3])
    assert made.keys[1].count_nonzero() == 8 * 2 * 8 and not made.keys[0].any()
    for row, length in ((0, 5), (1, 3)):
        keys, values = (t[row, :, :length].repeat_interleave(2, 0) for t in (k, v))
        right = sdpa(q[row, :, :length], keys, values, is_causal=True)
        torch.testing.assert_close(out[row, :length], right.transpose(0, 1))


@ROOMS
def test_a_later_prefill_attends_to_what_the_slot_holds(room: Room) -> None:
    made = opened(room)
    k, v, q = random(1, 2, 6, 8), random(1, 2, 6, 8) + 1, random(1, 4, 6, 8)
    slots, row = torch.full((6,), 3), made.table_SK[3:, : room.needed(6)][:1]
    made.begin(PrefillPlan(torch.arange(4), *made.place(slots[:4], torch.arange(4)), row, None))
    made.prefill(q[:, :, :4], k[:, :, :4], v[:, :, :4], 0.5)
    mask = (torch.arange(6) <= torch.tensor([4, 5])[:, None])[None, None]
    made.begin(PrefillPlan(torch.arange(2), *made.place(slots[:2], torch.tensor([4, 5])), row, mask))
    out = made.prefill(q[:, :, 4:], k[:, :, 4:], v[:, :, 4:], 0.5)
    right = sdpa(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1), is_causal=True, scale=0.5)
    torch.testing.assert_close(out, right[:, :, 4:].transpose(1, 2))


@ROOMS
def test_a_decode_step_stores_the_new_token_and_attends_to_all_before_it(room: Room) -> None:
    made, lengths = opened(room), torch.tensor([1, 2, 0, 5])
    for tensor in (*made.keys, *made.values):
        tensor.copy_(random(*tensor.shape))
    before = [held(tensors[0], made.table_SK[:4], 6).clone() for tensors in (made.keys, made.values)]
    slots = torch.tensor(made.in_order([0, 1, 3]))
    assert slots.tolist() == [3, 1, 0]
    q, k, v = random(3, 4, 1, 8), random(3, 2, 1, 8), random(3, 2, 1, 8) + 1
    made.begin_decoding(slots, lengths)
    out = made.decode(q, k, v, 0.25, layer=0)
    assert out.shape == (3, 1, 4, 8)
    after = held(made.keys[0], made.table_SK[:4], 6)
    for lane, slot in enumerate(slots.tolist()):
        past = int(lengths[slot])
        keys, values = (
            torch.cat([cached[slot, :, :past], new[lane]], 1).repeat_interleave(2, 0)
            for cached, new in zip(before, (k, v), strict=True)
        )
        torch.testing.assert_close(out[lane, 0], sdpa(q[lane], keys, values, scale=0.25)[:, 0])
        assert torch.equal(after[slot, :, past], k[lane, :, 0])
    assert torch.equal(after[2, :, :5], before[0][2, :, :5])


def test_a_handle_is_free_again_when_its_cache_is_gone() -> None:
    room = Room(1, 4, 4)
    one, two = cache(room, 1), cache(room, 1)
    assert one.handle != two.handle
    freed = one.handle
    del one
    assert cache(room, 1).handle <= freed


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
