"""Which programs are followed: where they are drawn from, when they differ, and which kinds of them are told apart."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlkernel.evaluator.cpu.kinds import Kinds
from rlkernel.evaluator.cpu.latency import Chain
from rlkernel.evaluator.cpu.reuse import Reuse
from rlkernel.evaluator.cpu.sampling import DIFFERENT, EXACT_KINDS, MOST_KINDS, Kind, Sampling, differ, spread
from rlkernel.evaluator.judging.costs.counts import Counts


def test_programs_are_spread_over_each_dimension() -> None:
    """16 of a grid of 64 x 32: one in each slice of 4 columns, one in each pair of rows."""
    numbers = list(spread((64, 32, 1), 16, random.Random(0)))
    assert sorted(number % 64 // 4 for number in numbers) == list(range(16))
    assert sorted(number // 64 // 2 for number in numbers) == list(range(16))


@given(st.tuples(*[st.integers(1, 40)] * 3), st.sampled_from([2, 4, 16, 64]), st.integers(0, 99))
def test_every_two_programs_lie_opposite_each_other(grid: tuple[int, int, int], count: int, seed: int) -> None:
    numbers = list(spread(grid, count, random.Random(seed)))
    assert {one + other for one, other in zip(numbers[::2], numbers[1::2], strict=True)} == {math.prod(grid) - 1}


def test_a_quarter_more_of_anything_is_a_difference() -> None:
    assert not differ([(100.0, 10.0, 0.0), (80.0, 10.0, 0.0)])
    assert differ([(100.0, 10.0, 0.0), (74.0, 10.0, 0.0)])
    assert differ([(100.0, 10.0, 8.0), (100.0, 10.0, 0.0)])


class Launch:
    """256 programs that store into blocks of 16 elements, each under a mask of its own."""

    def __init__(self, seed: int, inside: object) -> None:
        self.counts, self.kinds, self.reuse, self.wrote, self.tried, self.accesses = Counts(), Kinds(), Reuse(), False, False, 0
        self.chain, self.undecided, self.told = Chain(), False, False
        self.programs, self.inside = random.Random(seed), inside

    def stored(self, blocks: int) -> float:
        """The elements that all programs store, as the followed ones tell."""
        sampling = Sampling(self, (256, 1, 1))
        for number in sampling.programs():
            for block in range(blocks):
                everybody = self.kinds.program_id(0)
                ends = block * 16 + np.array([[0, 15]])
                self.kinds.reach(self.inside(everybody, ends), write=True)  # type: ignore[operator]
                mine = self.inside(np.array([[number]]), block * 16 + np.arange(16)[None])  # type: ignore[operator]
                self.wrote = self.tried = True
                self.counts.stored[0] = self.counts.stored.get(0, 0.0) + float(mine.sum())
        assert len(sampling._kinds) < MOST_KINDS
        return sampling.counts().stored[0]


@pytest.mark.parametrize("seed", range(20))
def test_the_last_block_of_a_line_is_counted_as_it_is(seed: int) -> None:
    """The last of 256 programs stores 1 element of 16, and the 16 before it none."""
    length = 239 * 16 + 1
    assert Launch(seed, lambda program, element: program * 16 + element < length).stored(1) == length


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 300), st.sampled_from([16, 32, 64])), min_size=1, max_size=3), st.integers(0, 99))
def test_tiles_at_edges_are_counted_as_they_are(axes: list[tuple[int, int]], seed: int) -> None:
    """A grid of tiles over one to three axes, each with its length and its tile's; at every edge tiles store a part of their own.
    All of them store each element once."""
    lengths, blocks = np.array(axes).T
    grid = [*(-(-lengths // blocks)), 1, 1][:3]
    machine = Launch(seed, None)
    sampling = Sampling(machine, (int(grid[0]), int(grid[1]), int(grid[2])))
    for number in sampling.programs():
        first = [machine.kinds.program_id(axis) * block for axis, block in enumerate(blocks)]
        parts = [start + np.array([[0, block - 1]]) < length for start, block, length in zip(first, blocks, lengths, strict=True)]
        machine.kinds.reach(np.logical_and.reduce(parts), parts, write=True)
        places = np.unravel_index(number, grid, order="F")
        inside = [min(b, n - p * b) for p, b, n in zip(places, blocks, lengths, strict=False)]
        machine.wrote = machine.tried = True
        machine.counts.store(0, math.prod(inside), math.prod(blocks) - math.prod(inside))
    assert sampling.counts().stored[0] == pytest.approx(math.prod(lengths))


def test_what_many_kinds_store_is_not_known_to_be_missing() -> None:
    machine = Launch(0, None)
    sampling = Sampling(machine, (64, 1, 1))
    for number in sampling.programs():
        machine.kinds.decide(machine.kinds.program_id(0) % (EXACT_KINDS + 1))
        machine.wrote = machine.tried = True
        machine.counts.store(0, number, 0)
    assert sampling.counts().left_out == {0: math.inf}


def test_a_triangle_has_a_price() -> None:
    """Program p stores the elements up to p: each has other blocks that it stores a part of."""
    found = Launch(0, lambda program, element: element <= program).stored(16)
    assert 0.8 * 256 * 257 / 2 < found < 1.2 * 256 * 257 / 2


@given(st.integers(2, 5000), st.integers(1, 64), st.integers(1, 8))
def test_atomics_on_one_word_wait_for_those_of_all_programs(programs: int, lanes: int, each: int) -> None:
    """Every program changes word 0 and a word of its own, with so many elements each."""
    launch = Launch(programs, None)
    sampling = Sampling(launch, (programs, 1, 1))
    for number in sampling.programs():
        launch.wrote = launch.tried = True
        launch.counts.queue_up(np.repeat(np.array([0, 8 + 8 * number], dtype=np.uint64), lanes), each)
    counts = sampling.counts()
    assert counts.atomics[0] == pytest.approx(programs * lanes * each)
    assert counts.queue == counts.atomics[0]
    assert all(times <= lanes * each for word, times in counts.atomics.items() if word)


@given(st.integers(1, 3000), st.integers(0, 99))
def test_the_last_program_is_followed_and_counts_no_more_than_any_other(programs: int, seed: int) -> None:
    """What has no mask leaves its tensors there alone."""
    launch, followed = Launch(seed, None), []
    sampling = Sampling(launch, (programs, 1, 1))
    for number in sampling.programs():
        followed.append(number)
        launch.wrote = launch.tried = True
        counted = 3 if 2 * followed[0] == programs - 1 else 2  # opposite the middle lie both ends
        launch.counts.store(0, 100 if number == programs - 1 and len(followed) > counted else 1, 0)
    assert programs - 1 in followed
    assert sampling.counts().stored[0] == programs


def test_the_last_program_is_left_alone_where_memory_decides_who_goes_on() -> None:
    """`if pid >= tl.load(tiles): return`: what stands behind is followed, and the last program may not come there."""
    launch, followed = Launch(0, None), []
    sampling = Sampling(launch, (10**6, 1, 1))
    for number in sampling.programs():
        followed.append(number)
        launch.wrote = launch.tried = launch.undecided = True
        launch.counts.store(0, 1, 0)
    assert followed and 10**6 - 1 not in followed


@given(st.integers(2, 3000), st.integers(0, 10**9), st.integers(0, 99), st.integers(0, 50), st.integers(1, 50))
def test_what_grows_with_known_turns_costs_the_same_whichever_programs_are_drawn(
    programs: int, shape: int, seed: int, once: int, each: int
) -> None:
    turns = np.random.default_rng(shape).zipf(1.5, programs).clip(0, 5000) - 1
    launch, followed = Launch(seed, None), 0
    sampling = Sampling(launch, (programs, 1, 1))
    for number in sampling.programs():
        launch.kinds.take(turns[launch.kinds._members])
        launch.wrote = launch.tried = True
        launch.counts.move(0, float(once + each * turns[number]))
        followed += 1
    counts = sampling.counts()
    assert counts.traffic[0] == pytest.approx(programs * once + each * turns.sum())
    assert counts.largest[0] == once + each * turns.max()
    assert followed <= 6  # the first and those opposite, those with the fewest and the most turns, and the last


@given(st.integers(2, 5000), st.integers(0, 99), st.integers(1, 50))
def test_work_that_grows_along_the_grid_costs_the_same_whichever_programs_are_drawn(programs: int, seed: int, each: int) -> None:
    """As where a program reads its row up to the diagonal by one access."""
    launch = Launch(seed, None)
    sampling = Sampling(launch, (programs, 1, 1))
    for number in sampling.programs():
        launch.wrote = launch.tried = True
        launch.counts.move(0, float(7 + each * number))
    assert sampling.counts().traffic[0] == pytest.approx(7 * programs + each * programs * (programs - 1) / 2)


def test_more_programs_are_followed_where_turns_do_not_tell_what_a_program_does() -> None:
    launch, followed = Launch(0, None), 0
    sampling = Sampling(launch, (4096, 1, 1))
    for number in sampling.programs():
        launch.kinds.take(launch.kinds._members)
        launch.wrote = launch.tried = True
        launch.counts.move(0, float(number**4))
        followed += 1
    assert followed == 4 + DIFFERENT + 1


def test_what_each_turn_loads_again_is_not_less_where_there_are_fewer_turns() -> None:
    """Of programs with two to four turns, each of which loads 64 bytes of the program's own, all read these."""
    kind = Kind(np.arange(3), turns=np.array([2.0, 3.0, 4.0]))
    kind.followed.append(Counts(spanned={0: 256.0}, apart={0: 64.0}))
    kind.learn()
    assert [kind.unshared(Counts(spanned={0: 64.0 * turns}))[0] for turns in (2, 3, 4)] == [64.0, 64.0, 64.0]
    kind.turns = np.array([4.0, 4.0, 4.0])
    assert kind.unshared(Counts(spanned={0: 128.0}))[0] == 32.0, "where turns are equal, a part is a part"


class Uneven(Launch):
    """256 programs of one block of 64 elements each, of which memory tells how many every one of them stores."""

    def __init__(self, seed: int, lengths: list[int]) -> None:
        super().__init__(seed, None)
        self.lengths = lengths

    def most(self) -> tuple[float, float]:
        """The elements that all programs store, as the followed ones tell, and how many more there may be by chance."""
        sampling = Sampling(self, (256, 1, 1))
        for number in sampling.programs():
            self.kinds.program_id(0)
            self.wrote = self.tried = self.told = True
            self.counts.store(0, self.lengths[number], 64 - self.lengths[number])
        counts = sampling.counts()
        return counts.stored[0], counts.by_chance[0]


@settings(deadline=None)
@given(st.integers(0, 999))
def test_who_stores_as_many_as_memory_says_is_not_taken_to_store_too_few_by_chance(seed: int) -> None:
    chance = np.random.default_rng(seed)
    lengths = np.minimum(chance.geometric(1 / 16, 256), 64).tolist()
    stored, more = Uneven(seed, lengths).most()
    assert stored + more >= 0.95 * sum(lengths)


def test_programs_that_store_alike_store_no_more_by_chance_and_who_leaves_out_half_is_told() -> None:
    assert Uneven(0, [48] * 256).most() == (pytest.approx(48 * 256), 0.0)
    told = 0
    for seed in range(20):
        lengths = [64 * (number % 2) for number in np.random.default_rng(seed).permutation(256)]
        stored, more = Uneven(seed, lengths).most()
        told += stored + more < 0.95 * 64 * 256
    assert told >= 14, "of one in eight those that are followed first are all whole"
