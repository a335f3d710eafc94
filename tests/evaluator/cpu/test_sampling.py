"""Which programs are followed: where they are drawn from, when they differ, and which kinds of them are told apart."""

from __future__ import annotations

import random

from rlkernel.evaluator.cpu.sampling import differ, spread


def test_programs_are_spread_over_each_dimension() -> None:
    """16 of a grid of 64 x 32: one in each slice of 4 columns, one in each pair of rows."""
    numbers = list(spread((64, 32, 1), 16, random.Random(0)))
    assert sorted(number % 64 // 4 for number in numbers) == list(range(16))
    assert sorted(number // 64 // 2 for number in numbers) == list(range(16))


def test_a_quarter_more_of_anything_is_a_difference() -> None:
    assert not differ([(100.0, 10.0, 0.0), (80.0, 10.0, 0.0)])
    assert differ([(100.0, 10.0, 0.0), (74.0, 10.0, 0.0)])
    assert differ([(100.0, 10.0, 8.0), (100.0, 10.0, 0.0)])
