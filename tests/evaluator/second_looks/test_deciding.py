"""Who gets a second look, and what stands where none could tell."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from rlkernel.evaluator.cpu_judge import Judged, TooLong
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.undecided import Undecided, undecided
from rlkernel.evaluator.judging.verdict import MAX_DETAIL
from rlkernel.evaluator.second_looks.looking import out_of_time
from rlkernel.types import Status
from tests.evaluator.second_looks.doubles import (
    LOOKS,
    LOOP,
    PROBLEM,
    RACE,
    WHOLE,
    Judge,
    after,
    failing,
    judged,
)


@pytest.mark.anyio
async def test_what_no_look_could_decide_is_undecided() -> None:
    """No longer sizes, no time at them, or kernels that fail there while the text has sizes that are not as large."""
    for nothing in (TooLong(), Ended(Status.TIMEOUT, ""), judged(Status.INCORRECT, same_work=False)):
        judge = Judge(columns=nothing, rows=nothing)
        assert await after(judge, judged(Status.INCORRECT), "COLUMNS = 8192") is Undecided.OWN
    assert await after(Judge(), judged(Status.INCORRECT), "COLUMNS = 8192", looks=()) is Undecided.OWN
    assert await after(Judge(), judged(Status.CORRECT, LOOP), looks=()) is Undecided.LONGER
    assert await after(Judge(columns=RACE, rows=RACE), failing("out of bounds")) is None


def test_what_is_undecided_is_told_in_one_line_that_always_fits() -> None:
    sizes = {"ROWS": 16, "COLS": 96}
    assert undecided("", sizes, Undecided.LONGER) == (
        "judged at ROWS = 16, COLS = 96 alone: what is longer at full shape could not be judged; judge it on a GPU, "
        "or give larger sizes as SMALL in the problem file"
    )
    for why, many in itertools.product(Undecided, (1, 40)):
        line = undecided("d" * 400, {f"A_LONG_NAME_OF_A_SIZE_{number}": 4096 for number in range(many)}, why)
        assert len(line) <= MAX_DETAIL and line.startswith("dddd") and line.endswith(why) and "SMALL in the problem file" in line


def test_only_kernels_that_ran_out_of_time_are_undecided_for_it() -> None:
    late = Ended(Status.TIMEOUT, "running the kernels took more than 20 s")
    assert out_of_time(late) is None  # it was traced or compiled
    late.ran = True
    assert out_of_time(late) is Undecided.TIME
    assert [out_of_time(other) for other in (RACE, judged())] == [None, None]


@pytest.mark.anyio
@pytest.mark.parametrize("status", [Status.RUNTIME_ERROR, Status.CRASH, Status.INVALID])
async def test_whose_forward_fails_at_the_first_sizes_alone_is_looked_at(status: Status) -> None:
    """Its text need not have a size as a number: `assert x.shape[1] == 8 * BLOCK`. Nor whose constructor does."""
    traced = list[str]()
    found = await after(Judge(columns=judged()), Ended(status, "in forward"), traced=traced)
    assert found is not None
    assert (found.correct, found.sizes, traced) == (True, {"COLS": 8192}, ["full", "small"])
    nobody = Judge()
    assert await after(nobody, Ended(status, "in forward"), "x.view(-1, 8192)") is None
    assert nobody.asked == []


@pytest.mark.anyio
async def test_what_forward_asserts_is_left_out_where_it_holds_at_full_shape() -> None:
    """Who is right at the first sizes without it is right, unless it is wrong at longer ones; who is not gets the other looks."""
    code, ended = "assert x.shape == (4096, 8192)\n", Ended(Status.RUNTIME_ERROR, "in forward")
    right = Judge(**{PROBLEM.source: judged()}, other=judged())
    found = await after(right, ended, code, traced=[])
    assert found is not None
    assert (found.correct, found.sizes, right.asked) == (True, {"ROWS": 16, "COLS": 96}, [PROBLEM.source, "other"])
    short = Judge(**{PROBLEM.source: judged(Status.CORRECT, LOOP)}, columns=judged(Status.INCORRECT))
    found = await after(short, ended, code, traced=[])
    assert found is not None
    assert (found.status, found.sizes) == (Status.INCORRECT, {"COLS": 8192})
    longer = Judge(**{PROBLEM.source: judged(Status.INCORRECT)}, columns=judged())
    found = await after(longer, ended, code, traced=[])
    assert found is not None
    assert (found.correct, found.sizes) == (True, {"COLS": 8192})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("code", "full", "there", "status"),
    [
        ("8192", judged(), True, None),  # that number is how many of one size there are for each of another
        ("8192", judged(Status.INCORRECT), True, Status.INCORRECT),
        ("8192", judged(same_work=False), True, Status.INCORRECT),
        ("8192", TooLong(), True, Status.INCORRECT),
        ("8192", judged(), False, Status.INCORRECT),  # the full shape is too much work, and nothing is asked of it
        ("7", judged(), True, Status.INCORRECT),  # it has no size as a number
    ],
)
async def test_who_has_a_size_as_a_number_and_is_right_at_the_full_shape_is_right(
    code: str, full: Judged | Exception, there: bool, status: Status | None
) -> None:
    judge = Judge(columns=judged(Status.INCORRECT), **{WHOLE.source: full})
    found = await after(judge, judged(Status.CORRECT, LOOP), code, looks=(*LOOKS[:1], *(WHOLE,) * there))
    assert (found and found.status) == status
    assert judge.asked == ["columns", *(WHOLE.source,) * (there and code == "8192")]


@pytest.mark.anyio
@pytest.mark.parametrize("by_chance", [True, False])
async def test_who_perhaps_writes_too_little_by_chance_is_looked_at_where_all_is_written(by_chance: bool) -> None:
    judge = Judge(**{WHOLE.source: judged(Status.INCORRECT)})
    found = await after(judge, replace(judged(), by_chance=by_chance), looks=(WHOLE,))
    assert judge.asked == [WHOLE.source] * by_chance
    assert (found.status, found.sizes) == (Status.INCORRECT, WHOLE.sizes) if by_chance else found is None
    right = Judge(**{WHOLE.source: judged()})
    assert await after(right, replace(judged(), by_chance=by_chance), looks=(WHOLE,)) is None
