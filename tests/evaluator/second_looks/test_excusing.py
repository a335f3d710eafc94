"""Looks at a candidate that is not right at the first sizes, and may be made for its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlkernel.evaluator.cpu_judge import Judged, TooLong
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.undecided import Undecided
from rlkernel.evaluator.messages.oracle import Lighter, Longer
from rlkernel.types import Evaluation, Status
from tests.evaluator.second_looks.doubles import (
    LOOKS,
    LOOP,
    WHOLE,
    Judge,
    after,
    failing,
    judged,
)


@pytest.mark.anyio
async def test_who_is_right_and_takes_too_long_is_looked_at_with_less_beside() -> None:
    other = Evaluation(Status.INCONSISTENT, "", matches=True)
    lighter = (Longer("columns", {"COLS": 8192}, None, Lighter("lighter", {"COLS": 8192, "ROWS": 2})), LOOKS[1])
    judge = Judge(columns=TooLong(), lighter=judged(), rows=judged(Status.INCORRECT))
    found = await after(judge, Judged(other, False, frozenset()), looks=lighter)
    assert found is not None and (found.status, found.sizes) == (Status.CORRECT, {"COLS": 8192, "ROWS": 2})
    assert judge.asked == ["columns", "lighter"]
    wrong = Judge(columns=TooLong(), lighter=judged(), rows=judged(Status.INCORRECT))  # few rows may hide what is wrong
    assert await after(wrong, judged(Status.INCORRECT), "COLUMNS = 8192", looks=lighter) is Undecided.OWN
    assert "lighter" not in wrong.asked
    told = Judge(columns=judged(Status.INCORRECT), rows=judged(Status.INCORRECT))  # a look that has told something stands
    assert await after(told, Judged(other, False, frozenset()), looks=lighter) is None
    assert "lighter" not in told.asked


@pytest.mark.anyio
async def test_who_is_right_at_longer_sizes_says_what_stays_short_there() -> None:
    filled = (Longer("filled", {"ROWS": 16, "COLS": 2048}, None),)
    judge = Judge(filled=judged(Status.CORRECT, LOOP))
    found = await after(judge, replace(judged(Status.INCORRECT), unfilled=True), looks=filled)
    assert found.correct and found.detail == f"judged at ROWS = 16, COLS = 2048 alone: {Undecided.LONGER}"


@pytest.mark.anyio
async def test_who_is_right_at_its_own_sizes_is_right() -> None:
    code = "COLUMNS = 8192"
    found = await after(Judge(columns=judged()), judged(Status.INCORRECT), code)
    assert found is not None
    assert (found.correct, found.sizes) == (True, {"COLS": 8192})
    wrong = Judge(columns=judged(Status.INCORRECT), rows=judged(Status.INCORRECT))
    assert await after(wrong, judged(Status.INCORRECT), code) is None
    ended = Ended(Status.OUT_OF_BOUNDS, "")
    ended.ran = True
    found = await after(wrong, ended)
    assert found is not None
    assert (found.status, found.sizes) == (Status.INCORRECT, {"COLS": 8192})


@pytest.mark.anyio
async def test_who_is_right_where_something_is_rare_must_be_right_where_there_is_more_of_it() -> None:
    """It was wrong elsewhere with filled blocks: of 16 rows none may be one that is left out."""
    looks = (LOOKS[1], LOOKS[0])
    more = (Longer("too much", {"ROWS": 4096, "COLS": 8192}, None), Longer("more", {"ROWS": 4096, "COLS": 8192}, None))
    wrong = Judge(rows=judged(Status.INCORRECT), columns=judged(), more=judged(Status.INCORRECT))
    wrong.says["too much"] = TooLong()
    found = await after(wrong, judged(Status.INCORRECT), "x = 8192 + 4096", looks=looks, crowded=more)
    assert (found.status, found.sizes) == (Status.INCORRECT, {"ROWS": 4096, "COLS": 8192})
    right = Judge(rows=judged(Status.INCORRECT), columns=judged(), more=judged())
    right.says["too much"] = TooLong()
    found = await after(right, judged(Status.INCORRECT), "x = 8192 + 4096", looks=looks, crowded=more)
    assert (found.correct, found.detail) == (True, "")
    open_still = Judge(rows=judged(Status.INCORRECT), columns=judged())
    open_still.says["too much"] = TooLong()
    found = await after(open_still, judged(Status.INCORRECT), "x = 8192 + 4096", looks=looks, crowded=more[:1])
    assert found.correct and found.detail.endswith(Undecided.LONGER)
    nowhere = Judge(columns=judged())  # wrong at the first sizes alone
    assert (await after(nowhere, judged(Status.INCORRECT), "x = 8192", crowded=more)).correct
    assert nowhere.asked[:1] == ["columns"] and "more" not in nowhere.asked


@pytest.mark.anyio
async def test_who_is_wrong_where_blocks_are_not_filled_gets_four_looks() -> None:
    """Its masks leave elements out at the first sizes, and none at full shape: two that fill blocks, and two at longer sizes."""
    searched = list[int | None]()
    wrong = replace(judged(Status.INCORRECT), unfilled=True)
    found = await after(Judge(columns=judged()), wrong, searched=searched)
    assert found is not None
    assert (found.correct, found.sizes, searched) == (True, {"COLS": 8192}, [None])
    still = Judge(columns=wrong, rows=wrong)
    assert await after(still, wrong, searched=searched) is Undecided.OWN
    assert (still.asked, searched) == (["columns", "rows"] * 2, [None, None, 0, 3])
    full = Judge(columns=judged(Status.INCORRECT), rows=judged())  # its blocks are filled, and it is wrong
    assert await after(full, wrong, searched=searched) is None
    assert full.asked == ["columns"]
    filled = Judge()
    assert await after(filled, judged(Status.INCORRECT)) is None
    assert filled.asked == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("beyond", "status"),
    [
        (judged(), Status.CORRECT),
        (judged(Status.INCORRECT), Status.INCORRECT),
        (replace(judged(Status.INCORRECT), unfilled=True), Status.CORRECT),  # as at the first sizes
        (judged(Status.INCORRECT, same_work=False), Status.CORRECT),
        (TooLong(), Status.CORRECT),
    ],
)
async def test_who_is_right_where_blocks_are_filled_shows_its_short_loops_at_sizes_beyond(
    beyond: Judged | Exception, status: Status
) -> None:
    """Where there are more rows of fewer columns it is wrong because of these: it is made for 2048 columns, and wrong at 96."""
    looks = (
        Longer("filled", {"ROWS": 16, "COLS": 2048}, None), Longer("rows", {"ROWS": 4096, "COLS": 96}, None),
        Longer("beyond", {"ROWS": 16, "COLS": 8192}, None),
    )  # fmt: skip
    wrong = judged(Status.INCORRECT)
    judge = Judge(wrong, filled=judged(Status.CORRECT, LOOP), rows=wrong, beyond=beyond)
    found = await after(judge, replace(wrong, unfilled=True), looks=looks)
    assert found is not None and (found.status, judge.asked[:4]) == (status, ["filled", "rows", "shorter", "beyond"])
    assert found.sizes["COLS"] == (8192 if status is Status.INCORRECT else 2048)


@pytest.mark.anyio
@pytest.mark.parametrize(("shorter", "status"), [(judged(), Status.INCORRECT), (judged(Status.INCORRECT), Status.CORRECT)])
async def test_what_is_wrong_beyond_counts_where_fewer_rows_alone_leave_it_right(shorter: Judged, status: Status) -> None:
    """Its blocks are filled by 128 rows of 1024 columns, and longer rows are fewer: 16. Where 16 rows of 1024 are wrong as well,
    that is why."""
    looks = (Longer("filled", {"ROWS": 128, "COLS": 1024}, None), Longer("beyond", {"ROWS": 16, "COLS": 8192}, None))
    judge = Judge(shorter, filled=judged(Status.CORRECT, LOOP), beyond=judged(Status.INCORRECT))
    found = await after(judge, replace(judged(Status.INCORRECT), unfilled=True), looks=looks)
    assert found is not None and (found.status, judge.asked[:3]) == (status, ["filled", "beyond", "shorter"])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("first", "code"),
    [
        (judged(Status.NO_KERNEL), "x = 8192"),
        (judged(Status.INCORRECT), ""),
        (Ended(Status.TIMEOUT, ""), "x = 8192"),
        (Ended(Status.UNTRACEABLE, ""), "x = 8192"),
    ],
)
async def test_what_longer_sizes_cannot_excuse_is_not_looked_at(first: Judged | Ended, code: str) -> None:
    judge = Judge(columns=judged(), rows=judged())
    assert await after(judge, first, code) is None
    assert judge.asked == []


@pytest.mark.anyio
async def test_what_fails_at_full_shape_is_excused_by_no_other_sizes() -> None:
    """Kernels that fail there are not looked at; where a look's own draw of programs is the first to fail, looks end."""
    there = failing("out of bounds")
    there.at_full = True
    judge = Judge(columns=judged(), rows=judged())
    assert await after(judge, there) is None
    assert judge.asked == []
    assert await after(judge, failing("out of bounds")) is not None
    there_then = Judge(columns=there, rows=judged())
    assert await after(there_then, failing("out of bounds")) is None
    assert there_then.asked == ["columns"]


@pytest.mark.anyio
async def test_who_repeats_a_size_is_looked_at_where_that_is_as_large() -> None:
    """8192 columns are only in the first look, also once blocks that were not filled excuse nothing any more."""
    wrong = judged(Status.INCORRECT)
    for first in (wrong, replace(wrong, unfilled=True)):
        judge = Judge(columns=wrong, rows=wrong)
        assert await after(judge, first, "x = 8192") is None
        assert set(judge.asked) == {"columns"}
    rows = Judge(columns=wrong, rows=judged())
    assert await after(rows, wrong, "x = 8192") is None
    found = await after(rows, wrong, "x = 4096")
    assert found is not None and found.sizes == {"ROWS": 4096}


@pytest.mark.anyio
async def test_who_is_wrong_at_the_full_shape_is_excused_by_no_other_sizes() -> None:
    """Who overflows by chance is right at some sizes."""
    judge = Judge(rows=judged(), **{WHOLE.source: judged(Status.INCORRECT)})
    assert await after(judge, judged(Status.INCORRECT), "8192", looks=(WHOLE, LOOKS[1])) is None
    assert judge.asked == [WHOLE.source]
    there = await after(judge, failing("out of bounds"), "8192", looks=(WHOLE, LOOKS[1]))
    assert (there.status, there.sizes) == (Status.INCORRECT, WHOLE.sizes), "its kernels failed for other sizes than its own"
