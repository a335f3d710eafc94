"""Pages of slots, and how much room a cache gets."""

from __future__ import annotations

import pytest

from rlkernel.policy.slots.pages import Growth, Pages, Room


def test_slots_take_the_lowest_pages_as_they_go_on() -> None:
    pages = Pages(Room(pages=6, size=4, positions=12), slots=2)
    assert pages.take(0, 5) and pages.take(1, 4)
    assert not pages.take(0, 8)  # two pages are enough for 8
    assert pages.take(0, 9)
    assert (pages.held, pages.free) == ([[0, 1, 3], [2]], 2)
    assert (pages.missing(1, 12), pages.missing(0, 12)) == (2, 0)
    pages.release(0)
    assert (pages.held, pages.free) == ([[], [2]], 5)
    pages.take(1, 8)
    assert pages.held == [[], [2, 0]]
    with pytest.raises(AssertionError, match="slot 1 asks for 13 positions"):
        pages.take(1, 13)  # more than the longest slot


def test_pages_that_are_held_move_to_the_beginning() -> None:
    pages = Pages(Room(6, 4, 12), slots=3)
    for slot, positions in ((0, 8), (1, 4), (2, 8), (1, 8)):
        pages.take(slot, positions)
    pages.release(0)
    assert pages.held == [[], [2, 5], [3, 4]]
    assert pages.move(Room(5, 4, 8)) == [2, 3, 4, 5]
    assert (pages.held, pages.free) == ([[], [0, 3], [1, 2]], 1)


def test_room_in_pages_is_for_all_slots_at_the_length_of_the_longest_as_far_as_memory_goes() -> None:
    growth = Growth(slots=4, size=128, block=128, longest=1000)
    # 300 positions are 3 pages of 128; 4 slots have 12; one page is scratch.
    first = growth.room(None, 300, 10_000)
    assert first == Room(12, 128, 384)
    assert growth.room(None, 300, 1280) == Room(9, 128, 384)
    assert growth.room(first, 200, 10_000) == first
    # 385 are 4 pages, and half as many again: 6; 700 would be 9, but the model takes 1000 positions: 8.
    assert growth.room(first, 385, 10_000) == Room(24, 128, 768)
    assert growth.room(first, 700, 10_000) == Room(32, 128, 1024)
    assert growth.room(first, 1030, 10_000) == Room(36, 128, 1152)  # asked for is asked for


def test_slots_of_one_page_grow_by_more_than_is_needed_only_where_none_is_lost() -> None:
    growth = Growth(slots=4, size=None, block=128, longest=1000)
    first = growth.room(None, 100, 2000)
    assert first == Room(4, 128, 128)
    assert growth.room(first, 130, 2000) == Room(4, 384, 384)  # 256, and half as many again: 5 of 384 are 1920
    assert growth.room(first, 130, 1900) == Room(4, 256, 256)
    assert growth.room(first, 130, 600) == Room(1, 256, 256)
    assert growth.room(None, 130, 300) == Room(0, 256, 256)
