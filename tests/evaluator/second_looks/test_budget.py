"""What looks at one candidate may take, all together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlkernel.evaluator.cpu_judge import TooLong
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.undecided import Undecided
from rlkernel.evaluator.messages.oracle import Longer
from rlkernel.evaluator.second_looks.budget import MOST_WORK, OF_ALL_LOOKS, Budget, work_at_full
from rlkernel.types import Status
from tests.evaluator.second_looks.doubles import (
    LOOP,
    Judge,
    after,
    failing,
    judged,
)


@pytest.mark.anyio
async def test_looks_end_when_their_work_was_done_and_the_verdict_says_so() -> None:
    """All looks together have one bound in work, whatever each of them finds."""
    dear = replace(judged(Status.CORRECT, LOOP), work=OF_ALL_LOOKS)
    many = tuple(Longer(f"look{number}", {"ROWS": 16 * number, "COLS": 8192}, None) for number in range(1, 4))
    judge = Judge(look1=dear, look2=dear, look3=judged())
    assert await after(judge, judged(Status.CORRECT, LOOP), looks=many) is Undecided.WORK
    assert judge.asked == ["look1"]
    late = Ended(Status.TIMEOUT, "running the kernels took more than 20 s of processor time")
    late.ran = True
    judge = Judge(look1=late, look2=late, look3=late)
    assert await after(judge, judged(Status.INCORRECT), "COLUMNS = 8192", looks=many) is Undecided.WORK
    assert judge.asked == ["look1", "look2", "look3"]
    wrong = Judge(look1=dear, look2=judged(Status.INCORRECT), look3=judged())
    cheap = await after(wrong, judged(Status.CORRECT, LOOP), looks=many[1:])
    assert cheap.status is Status.INCORRECT  # what was found counts, however little is left


@pytest.mark.anyio
async def test_cheap_looks_at_other_values_come_before_longer_ones() -> None:
    dear = replace(judged(Status.CORRECT, LOOP), work=OF_ALL_LOOKS)
    judge = Judge(other=judged(), columns=dear, rows=dear)
    assert await after(judge, judged(Status.CORRECT, LOOP), counts=True) is Undecided.WORK
    assert judge.asked == ["other", "columns"]


def test_what_a_look_takes_of_the_work_of_all() -> None:
    """Kernels that fail, and looks that are given up, say no work of their own; a look that finds nothing takes a little."""
    failed, late = failing("a race"), Ended(Status.TIMEOUT, "")
    late.ran = True
    counts = []
    for found in (judged(), replace(judged(), work=MOST_WORK), failed, TooLong(), late, Ended(Status.RUNTIME_ERROR, "")):
        budget, count = Budget(), 0
        while budget.allows():
            budget.spend(found)
            count += 1
        assert budget.denied
        counts.append(count)
    assert counts == [180, 6, 30, 30, 3, 180]


@pytest.mark.parametrize(("run_seconds", "core_seconds"), [(20, 40 / 3), (120, 40.0)])
def test_a_look_at_the_full_shape_takes_what_a_run_may_take(run_seconds: int, core_seconds: float) -> None:
    """MOST_WORK is 10 s of a core: 2/3 of the run's seconds, and at most 40 s."""
    assert work_at_full(run_seconds) / MOST_WORK * 10 == pytest.approx(core_seconds)
