from __future__ import annotations

from collections import Counter

import pytest

from rlkernel.errors import UsageError
from rlkernel.training.schedule import schedule


def test_every_problem_is_used_once_per_pass_and_never_twice_in_a_step() -> None:
    plan = schedule(count=10, per_step=4, steps=25, seed=3)
    assert len(plan) == 25
    assert all(len(set(step)) == 4 for step in plan)
    # 25 steps of 4 are 10 passes over 10 problems.
    assert Counter(index for step in plan for index in step) == dict.fromkeys(range(10), 10)


def test_the_plan_depends_on_the_seed_only_and_a_longer_run_begins_the_same() -> None:
    assert schedule(10, 4, 5, seed=3) == schedule(10, 4, 9, seed=3)[:5]
    assert schedule(10, 4, 5, seed=3) != schedule(10, 4, 5, seed=4)


def test_more_prompts_per_step_than_problems() -> None:
    with pytest.raises(UsageError, match=r"prompts_per_step is 8, but there are 5 training problems: lower it"):
        schedule(count=5, per_step=8, steps=1, seed=0)
