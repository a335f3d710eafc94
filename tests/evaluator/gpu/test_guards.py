"""Guarded memory: a stray write is seen wherever it lies in a red zone, and a tensor is what it would be without one."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch


@pytest.mark.parametrize("offset", [-4096, -1, 24, 24 + 4095], ids=["first", "just before", "just after", "last"])
def test_one_stray_byte_breaks_a_zone(room: Any, offset: int) -> None:
    guards = room.guards.Guards()
    kept = [guards.empty((2, 3), (3, 1), torch.float32) for _ in range(3)]  # 24 bytes each
    assert not guards.broken()
    address = kept[1].data_ptr() + offset
    ctypes.memset(address, ctypes.string_at(address, 1)[0] ^ 1, 1)
    assert guards.broken()


def test_writes_inside_break_nothing(room: Any) -> None:
    guards = room.guards.Guards()
    tensor = guards.empty((3, 2), (1, 3), torch.int16)
    tensor.fill_(-1)
    assert not guards.broken()
    assert (tensor.stride(), tensor.untyped_storage().nbytes(), tensor.storage_offset()) == ((1, 3), 12, 0)


def test_fresh_memory_is_random_and_a_copy_is_equal(room: Any) -> None:
    guards = room.guards.Guards()
    assert not guards.used
    first, second = (guards.empty((64,), (1,), torch.int64) for _ in range(2))
    assert guards.used
    assert len({*first.tolist(), *second.tolist()}) == 128
    wanted = torch.arange(6.0).view(2, 3).t()
    copy = guards.place(wanted)
    assert torch.equal(copy, wanted)
    assert (copy.stride(), copy.data_ptr() != wanted.data_ptr()) == ((1, 3), True)


def test_memory_is_random_before_a_copy_that_leaves_gaps_and_before_no_other(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    guards = room.guards.Guards()
    monkeypatch.setattr(room.guards, "randomise", lambda raw: raw.fill_(7))
    apart = guards.place(torch.zeros(4, 8, dtype=torch.uint8)[:, :3])
    left = apart.untyped_storage().tolist()
    assert [left[place : place + 8] for place in range(0, 24, 8)] == [[0, 0, 0, 7, 7, 7, 7, 7]] * 3 and left[24:] == [0] * 3
    made: list[int] = []
    monkeypatch.setattr(room.guards, "randomise", lambda raw: made.append(raw.numel()))
    for dense in (torch.zeros(4, 8), torch.zeros(4, 8).t(), torch.zeros(2, 1, 3), torch.zeros(())):
        assert torch.equal(guards.place(dense), dense)
    assert made == []


@pytest.mark.parametrize("broken", [0, 15, 16, 40])
def test_a_stray_byte_is_seen_beside_each_of_many_tensors(room: Any, broken: int) -> None:
    guards = room.guards.Guards()
    kept = [guards.empty((8,), (1,), torch.uint8) for _ in range(41)]
    assert not guards.broken()
    address = kept[broken].data_ptr() + 8
    ctypes.memset(address, ctypes.string_at(address, 1)[0] ^ 1, 1)
    assert guards.broken()


def test_what_shares_elements_or_is_empty_stays_where_it_is(room: Any) -> None:
    guards = room.guards.Guards()
    for tensor in (torch.ones(1).expand(4), torch.empty(0, 3)):
        assert guards.place(tensor) is tensor
    assert not guards.used


def test_the_problems_generator_is_left_alone(room: Any) -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    room.guards.randomise(torch.empty(100, dtype=torch.uint8))
    assert torch.equal(torch.rand(2), expected)


def test_bytes_that_are_no_whole_word_are_overwritten_too(room: Any) -> None:
    raw = torch.zeros(8 * 5 + 7, dtype=torch.uint8)
    seen = torch.zeros_like(raw)
    for _ in range(20):
        room.guards.randomise(raw)
        seen |= raw
    assert int((seen == 0).sum()) == 0  # each byte stays 0 with a chance of 256 ** -20
    tensor = torch.zeros(11, dtype=torch.uint8)
    room.guards.fill(room.guards.words(tensor), 0x0102030405060708)
    assert tensor.tolist() == [8, 7, 6, 5, 4, 3, 2, 1, 8, 8, 8]


def test_released_memory_is_no_more(room: Any) -> None:
    guards = room.guards.Guards()
    guards.empty((2,), (1,), torch.float32)
    guards.release()
    assert not guards.used


def test_red_zones_are_drawn_with_the_first_tensor_and_anew_for_each_owner(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    randomise = room.guards.randomise
    monkeypatch.setattr(room.guards, "randomise", lambda raw: (drawn.append(raw.numel()), randomise(raw))[1])
    owners = [room.guards.Guards() for _ in range(3)]
    assert drawn == []
    owners[0].empty((2,), (1,), torch.float32, filled=False)
    owners[0].empty((2,), (1,), torch.float32, filled=False)
    owners[1].row(5, (3,), (1,), torch.float32)
    assert drawn == [4096, 4096]
    assert not torch.equal(owners[0]._red(), owners[1]._red())
    assert [bool(owner.broken()) for owner in owners[:2]] == [False, False] and not owners[2].used
    owners[0].row(2, (3,), (1,), torch.float32)
    assert not owners[0].broken()
    owners[0]._rows[0][1, 1, 4095] ^= 1
    assert owners[0].broken() and not owners[1].broken()


@pytest.mark.parametrize(("tensors", "zone"), [(0, 4096), (1, 4096), (16, 4096), (17, 3584), (64, 1024), (10_000, 512)])
def test_zones_of_many_tensors_take_no_more_together(room: Any, monkeypatch: pytest.MonkeyPatch, tensors: int, zone: int) -> None:
    monkeypatch.setattr(room.guards, "ZONES", 32 * 4096)
    assert room.guards.zone_of(tensors) == zone
    guards = room.guards.Guards(tensors)
    kept = guards.empty((8,), (1,), torch.uint8)
    assert not guards.broken()
    address = kept.data_ptr() + 8 + zone - 1
    ctypes.memset(address, ctypes.string_at(address, 1)[0] ^ 1, 1)
    assert guards.broken()
