"""Which earlier turns a policy is shown."""

from __future__ import annotations

import pytest

from algorithms import CONTEXTS
from algorithms.contexts import BestWindow, FullHistory, LastTurns, TopTurns

REWARDS = [1.0, 0.0, 2.0, 0.5, 1.0, 1.5]


def test_the_four_best_turns_stay_in_order() -> None:
    # 2, 1.5 and both turns of 1.0; of more equal ones the later stay.
    assert TopTurns()(REWARDS) == (0, 2, 4, 5)
    assert TopTurns(count=2)([1.0, 1.0, 1.0]) == (1, 2)


def test_the_best_window_is_consecutive_and_the_later_of_equal_ones() -> None:
    # Sums of four: 3.5, 3.5 and 5.
    assert BestWindow()(REWARDS) == (2, 3, 4, 5)
    assert BestWindow(count=2)([2.0, 1.0, 0.0, 1.0]) == (0, 1)
    assert BestWindow(count=2)([1.0, 1.0, 1.0]) == (1, 2)
    assert BestWindow(count=4)([0.0, 1.0]) == (0, 1)  # all there are, though the second alone is worth as much


def test_last_and_all() -> None:
    assert LastTurns()(REWARDS) == (2, 3, 4, 5)
    assert FullHistory()(REWARDS) == (0, 1, 2, 3, 4, 5)


@pytest.mark.parametrize("cls", CONTEXTS.values())
@pytest.mark.parametrize("count", range(5))
def test_short_histories_are_shown_whole(cls: type, count: int) -> None:
    assert cls()(REWARDS[:count]) == tuple(range(count))
