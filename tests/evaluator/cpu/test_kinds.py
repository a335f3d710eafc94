"""Programs that decide otherwise than the one that is followed are set apart, each kind on its own."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from rlkernel.evaluator.cpu.kinds import Kinds
from rlkernel.evaluator.cpu.latency import Chain
from rlkernel.evaluator.cpu.reuse import Reuse
from rlkernel.evaluator.cpu.sampling import MOST_SAMPLED, Sampling
from rlkernel.evaluator.judging.costs.counts import Counts


class Scripted:
    """A machine whose programs move the bytes that a function of their numbers gives, and decide by those."""

    def __init__(self, seed: int) -> None:
        self.kinds, self.counts, self.accesses = Kinds(), Counts(), 0
        self.reuse = Reuse()
        self.chain = Chain()
        self.wrote = self.tried = False
        self.programs = random.Random(seed)

    def run(self, sampling: Sampling, bytes_of: Callable[[np.ndarray], np.ndarray], *, hidden: bool = False) -> Counts:
        for number in sampling.programs():
            moved = int(bytes_of(np.array([number]))[0])
            if not hidden:
                self.kinds.decide(bytes_of(self.kinds._members))
            self.counts.traffic = {0: float(moved)}
            self.wrote, self.tried = moved > 0, True
        return sampling.counts()


@pytest.mark.parametrize("place", [0, 1234, 4095])
def test_a_kind_of_one_program_counts_once(place: int) -> None:
    """4095 programs of 8 bytes, and one of 10^6."""
    for seed in range(20):
        machine = Scripted(seed)
        counts = machine.run(Sampling(machine, (64, 64, 1)), lambda ids: np.where(ids == place, 10**6, 8))
        assert counts.traffic == {0: pytest.approx(10**6 + 4095 * 8)}
        assert counts.largest[0] == 10**6
        assert counts.programs == 4096


def test_several_kinds_count_by_their_numbers() -> None:
    """Programs 0 to 2999 have three kinds of 1000 programs each: 8, 16 and 24 bytes."""
    machine = Scripted(0)
    counts = machine.run(Sampling(machine, (3000, 1, 1)), lambda ids: 8 * (1 + ids % 3))
    assert counts.traffic == {0: pytest.approx(1000 * (8 + 16 + 24))}


def test_programs_of_which_none_writes_are_idle() -> None:
    machine = Scripted(0)
    sampling = Sampling(machine, (4096, 1, 1))
    machine.run(sampling, lambda ids: 0 * ids, hidden=True)
    assert sampling.idle
    small = Sampling(machine, (MOST_SAMPLED // 2, 1, 1))
    machine.run(small, lambda ids: 0 * ids, hidden=True)
    assert not small.idle


def test_loops_of_similar_length_are_of_one_kind() -> None:
    kinds = Kinds()
    kinds.follow((8, 1, 1), np.arange(8), 5)
    kinds.turns(np.array([0, 1, 2, 3, 4, 5, 7, 8]))
    assert kinds.alike.tolist() == [4, 5, 6]
    assert [left.tolist() for left in kinds.left] == [[0], [1], [2, 3], [7]]


@pytest.mark.parametrize(("write", "alike", "left"), [(False, [1, 2], [[0]]), (True, [1], [[2], [0]])])
def test_a_mask_that_leaves_out_more_is_of_the_same_kind_unless_it_is_that_of_a_store(
    write: bool, alike: list[int], left: list[list[int]]
) -> None:
    kinds = Kinds()
    kinds.follow((3, 1, 1), np.arange(3), 1)
    kinds.reach(np.array([[True, True], [True, False], [False, False]]), write=write)
    assert kinds.alike.tolist() == alike
    assert [found.tolist() for found in kinds.left] == left


@pytest.mark.parametrize(
    ("turns", "left"), [([7, 8, 8, 7, 7, 8], [[1, 2, 5]]), ([7, 8, 9, 7, 16, 8], [[1, 2, 5], [4]]), ([3] * 6, [])]
)
def test_two_lengths_of_a_loop_are_two_kinds(turns: list[int], left: list[list[int]]) -> None:
    """Work that is dealt out evenly takes 7 turns or 8. Of 7, 8, 9 and 16 those below 8 are one kind."""
    kinds = Kinds()
    kinds.follow((6, 1, 1), np.arange(6), 0)
    kinds.turns(np.array(turns))
    assert sorted(one.tolist() for one in kinds.left) == left
