"""What a program reads again so late that it comes from memory once more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlkernel.evaluator.cpu.reuse import SECTOR, Reuse
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.costs.counts import Counts
from rlkernel.evaluator.judging.costs.roofline import launch_us

MIB = 1 << 20


def sectors(first: int, size: int) -> Any:
    """Those of so many bytes."""
    return np.arange(first // SECTOR, (first + size) // SECTOR, dtype=np.uint64)


def passes(reuse: Reuse, count: int, *, each: int = MIB // 8, parts: int = 16) -> Counts:
    """A program that goes through 2 MiB of storage 0 several times, in parts."""
    for _ in range(count):
        for part in range(parts):
            reuse.touch(0, sectors(part * each, each), each)
    counts = Counts(traffic={0: float(count * parts * each)})
    reuse.count(counts)
    return counts


def test_a_second_pass_over_more_than_the_cache_comes_from_memory() -> None:
    # 128 programs move 2 MiB each in between, 256 MiB in all, of which a cache of 64 MiB holds a quarter.
    counts = passes(Reuse([256 * MIB], 128, 64 * MIB), 2)
    assert (counts.first, counts.again) == ({0: 2.0 * MIB}, {0: 1.5 * MIB})
    assert passes(Reuse([256 * MIB], 128, 64 * MIB), 5).again == {0: 4 * 1.5 * MIB}


@pytest.mark.parametrize(
    "reuse",
    [
        Reuse([256 * MIB], 128, 256 * MIB),  # the cache holds all
        Reuse([256 * MIB], 16, 64 * MIB),  # few programs run at once
        Reuse([2 * MIB], 128, 64 * MIB),  # all read the same
        Reuse(),  # nothing is known of a card
    ],
)
def test_what_the_cache_holds_is_read_once(reuse: Reuse) -> None:
    counts = passes(reuse, 3)
    assert (counts.first, counts.again) == ({}, {})


def test_neighbours_that_are_read_at_once_are_read_once() -> None:
    reuse = Reuse([256 * MIB], 128, 64 * MIB)
    for part in range(16):
        for shift in (0, SECTOR, 2 * SECTOR):  # 128 programs move 128 KiB or 256 KiB each in between
            reuse.touch(0, sectors(part * MIB // 8 + shift, MIB // 8), MIB // 8)
    counts = Counts(traffic={0: 6.0 * MIB})
    reuse.count(counts)
    assert counts.again == {}


def test_turns_that_stand_for_others_count_as_often() -> None:
    reuse = Reuse([256 * MIB], 128, 64 * MIB)
    for _ in range(2):  # two passes of 16 turns: the first is known, the second stands for 15, of which nobody knows where
        reuse.touch(0, sectors(0, MIB // 8), MIB // 8)
        reuse.begin_turn()
        reuse.touch(0, None, MIB // 8)
        reuse.end_turn(15)
    counts = Counts(traffic={0: 4.0 * MIB})
    reuse.count(counts)
    assert (counts.first, counts.again) == ({0: 2.0 * MIB}, {0: 1.5 * MIB})


def test_a_pass_in_a_turn_that_stands_for_others() -> None:
    reuse = Reuse([256 * MIB], 128, 64 * MIB)
    reuse.touch(0, sectors(0, 2 * MIB), 2 * MIB)
    reuse.begin_turn()
    reuse.touch(0, sectors(0, 2 * MIB), 2 * MIB)
    reuse.end_turn(4)
    counts = Counts(traffic={0: 10.0 * MIB})
    reuse.count(counts)
    assert (counts.first, counts.again) == ({0: 2.0 * MIB}, {0: 4 * 1.5 * MIB})


def test_another_program_begins_with_nothing() -> None:
    reuse = Reuse([256 * MIB], 128, 64 * MIB)
    passes(reuse, 1)
    reuse.begin()
    assert passes(reuse, 1).again == {}


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 63), st.integers(1, 64)), max_size=30), st.integers(1, 1000))
def test_no_more_comes_again_than_was_moved_besides_the_first_time(accesses: list[tuple[int, int, int]], programs: int) -> None:
    reuse = Reuse([128 * SECTOR] * 2, programs, 40 * SECTOR)
    counts = Counts()
    touched: dict[int, set[int]] = {0: set(), 1: set()}
    for storage, first, count in accesses:
        reuse.touch(storage, sectors(first * SECTOR, count * SECTOR), count * SECTOR)
        counts.traffic[storage] = counts.traffic.get(storage, 0.0) + count * SECTOR
        touched[storage] |= set(range(first, first + count))
    reuse.count(counts)
    for storage, again in counts.again.items():
        assert counts.first[storage] == SECTOR * len(touched[storage])
        assert 0 < again <= counts.traffic[storage] - counts.first[storage]


def test_memory_is_read_again_and_one_miss_serves_all_programs_that_share_it() -> None:
    size, moved = 256.0 * MIB, 512.0 * MIB
    time = H200.launch_us + (size + 0.75 * size) / H200.dram_bytes_per_us
    apart = Counts(132 * 16, {0: moved}, first={0: size}, again={0: 0.75 * size})
    assert launch_us(apart, [int(size)], 4, H200) == pytest.approx(time)
    # 4 programs go through all of it together: what they touch first is 4 times its size.
    shared = Counts(132 * 16, {0: 4 * moved}, first={0: 4 * size}, again={0: 4 * 0.75 * size})
    memory = max((size + 0.75 * size) / H200.dram_bytes_per_us, 4 * moved / H200.l2_bytes_per_us)
    assert launch_us(shared, [int(size)], 4, H200) == pytest.approx(H200.launch_us + memory)
