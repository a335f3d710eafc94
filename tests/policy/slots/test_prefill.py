"""Contexts into slots: logits as of a plain forward pass, in batches and pieces of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from rlkernel.policy.slots.cache import SLOTS, SlotCache
from rlkernel.policy.slots.cache import held as pages_of
from rlkernel.policy.slots.decoding import for_decoding
from rlkernel.policy.slots.pages import Room
from rlkernel.policy.slots.prefill import PrefillRow, prefill
from tests.policy.sampling import context


def cache(model: Any, slots: int, size: int = 16) -> SlotCache:
    """A cache of slots with 64 positions each; their pages are in no order."""
    room = Room(slots * 64 // size, size, 64)
    made = SlotCache(model.config, slots, room, torch.float32, torch.device("cpu"), kernels=False, opaque=False)
    for positions in (16, 32, 64):
        for slot in reversed(range(slots)):
            made.pages.take(slot, positions)
    made.write(range(slots))
    return made


@contextmanager
def shapes_of(model: Any) -> Iterator[list[tuple[int, int]]]:
    """The (rows, tokens) of every forward pass."""
    seen: list[tuple[int, int]] = []
    hook = model.model.embed_tokens.register_forward_hook(lambda _, inputs, __: seen.append(tuple(inputs[0].shape)))
    yield seen
    hook.remove()


@torch.no_grad()
def logits_after(model: Any, rows: list[PrefillRow], held: SlotCache, tokens: int) -> dict[int, torch.Tensor]:
    found: dict[int, torch.Tensor] = {}
    with for_decoding(model, SLOTS):
        for slots, logits_nV in prefill(model, held, rows, tokens):
            assert len(slots) == len(logits_nV) and not set(slots) & set(found)
            found |= dict(zip(slots, logits_nV, strict=True))
    return found


@torch.no_grad()
def plain(model: Any, ids: tuple[int, ...]) -> torch.Tensor:
    found: torch.Tensor = model(input_ids=torch.tensor([ids])).logits[0, -1]
    return found


def check(model: Any, rows: list[PrefillRow], found: dict[int, torch.Tensor]) -> None:
    assert set(found) == {slot for row in rows for slot in row.slots}
    for row in rows:
        for slot in row.slots:
            torch.testing.assert_close(found[slot], plain(model, row.token_ids), atol=2e-5, rtol=0)


def test_rows_of_other_lengths_are_one_batch(tiny_model: Any) -> None:
    rows = [PrefillRow(context(length, length), 0, (slot,)) for slot, length in enumerate((20, 7, 33))]
    with shapes_of(tiny_model) as shapes:
        found = logits_after(tiny_model, rows, cache(tiny_model, 3), tokens=200)
    assert shapes == [(3, 33)]
    check(tiny_model, rows, found)


def test_equal_contexts_are_computed_once_and_copied(tiny_model: Any) -> None:
    rows, held = [PrefillRow(context(20, 0), 0, (1, 3, 0)), PrefillRow(context(9, 1), 0, (2,))], cache(tiny_model, 4)
    with shapes_of(tiny_model) as shapes:
        found = logits_after(tiny_model, rows, held, tokens=200)
    assert shapes == [(2, 20)]
    check(tiny_model, rows, found)
    for layer in (*held.keys, *held.values):
        one, three, zero = (pages_of(layer, held.table_SK[[slot]], 20)[0] for slot in (1, 3, 0))
        assert one.any() and torch.equal(zero, one) and torch.equal(three, one)


@pytest.mark.parametrize("size", [16, 64])
def test_what_a_slot_holds_is_not_computed_again(size: int, tiny_model: Any) -> None:
    held, whole = cache(tiny_model, 2, size), [context(40, 0), context(30, 1)]
    logits_after(tiny_model, [PrefillRow(ids[:25], 0, (slot,)) for slot, ids in enumerate(whole)], held, tokens=200)
    later = [PrefillRow(ids, 25, (slot,)) for slot, ids in enumerate(whole)]
    with shapes_of(tiny_model) as shapes:
        found = logits_after(tiny_model, later, held, tokens=200)
    assert shapes == [(2, 15)]  # 40 - 25 and 30 - 25, padded
    check(tiny_model, later, found)


@pytest.mark.parametrize(("tokens", "expected"), [(16, [(1, 16), (1, 16), (1, 8)]), (39, [(1, 39), (1, 1)]), (40, [(1, 40)])])
def test_a_long_context_is_computed_in_pieces(tokens: int, expected: list[tuple[int, int]], tiny_model: Any) -> None:
    rows = [PrefillRow(context(40, 0), 0, (0,))]
    with shapes_of(tiny_model) as shapes:
        found = logits_after(tiny_model, rows, cache(tiny_model, 1), tokens)
    assert shapes == expected
    check(tiny_model, rows, found)


def test_batches_stay_below_the_limit_and_new_contexts_apart_from_later_turns(tiny_model: Any) -> None:
    held = cache(tiny_model, 5)
    ids = [context(20, seed) for seed in range(5)]
    logits_after(tiny_model, [PrefillRow(ids[4][:10], 0, (4,))], held, tokens=64)
    rows = [PrefillRow(ids[i], 0, (i,)) for i in range(4)] + [PrefillRow(ids[4], 10, (4,))]
    with shapes_of(tiny_model) as shapes:
        found = logits_after(tiny_model, rows, held, tokens=64)
    # The later turn alone; three times 20 are at most 64; the fourth.
    assert shapes == [(1, 10), (3, 20), (1, 20)]
    check(tiny_model, rows, found)
