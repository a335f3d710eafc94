"""Looks at a candidate that is right at the first sizes: it must be so at longer ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlkernel.evaluator.cpu_judge import Judged, TooLong
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.undecided import Undecided
from rlkernel.evaluator.messages.children import Extent
from rlkernel.evaluator.messages.oracle import Lighter, Longer
from rlkernel.types import Evaluation, Status
from tests.evaluator.second_looks.doubles import (
    AXIS,
    HELD,
    LOOKS,
    LOOP,
    PROBLEM,
    RACE,
    Judge,
    after,
    judged,
)


@pytest.mark.anyio
async def test_who_is_right_and_has_no_short_loop_pays_nothing() -> None:
    judge = Judge()
    assert await after(judge, judged()) is None
    assert judge.asked == []


@pytest.mark.anyio
async def test_looks_end_when_every_loop_was_long() -> None:
    """The first look shows the loop alone, so that there is a second one for the grid."""
    judge = Judge(columns=judged(Status.CORRECT, AXIS), rows=judged(Status.CORRECT, LOOP))
    assert await after(judge, judged(Status.CORRECT, LOOP)) is None
    assert judge.asked == ["columns"]
    assert await after(judge, judged(Status.CORRECT, LOOP, AXIS)) is None
    assert judge.asked == ["columns", "columns", "rows"]


@pytest.mark.anyio
async def test_a_fixed_number_that_longer_sizes_show_to_decide_is_the_verdict() -> None:
    found = await after(Judge(columns=HELD), judged(Status.CORRECT, LOOP))
    assert found.status is Status.IMPLAUSIBLE and found.sizes == LOOKS[0].sizes
    where_filled = await after(Judge(columns=HELD), replace(judged(), switched=True))
    where_shown = await after(Judge(columns=HELD), judged(), hiding=(PROBLEM.source,))
    assert where_filled.status is where_shown.status is Status.IMPLAUSIBLE
    assert await after(Judge(columns=judged(Status.IMPLAUSIBLE)), judged(Status.CORRECT, LOOP)) is None, "of another cause"


@pytest.mark.anyio
async def test_sizes_are_searched_for_when_they_are_needed() -> None:
    """A loop of 64 turns should be long enough where sizes are halved 4 times; where it is not, full sizes are searched."""
    long, searched = Extent(0, 3, 64, 3), list[int | None]()
    assert await after(Judge(columns=judged()), judged(Status.CORRECT, long), searched=searched) is None
    assert searched == [4]
    still = judged(Status.CORRECT, long)
    found = await after(Judge(columns=still, rows=still), judged(Status.CORRECT, long), searched=searched)
    assert found is Undecided.LONGER
    assert searched == [4, 4, 0]
    ended = Judge(columns=judged(), rows=judged())
    assert await after(ended, judged(Status.INCORRECT), "COLUMNS = 8192", searched=searched) is not None
    assert searched == [4, 4, 0, None]


@pytest.mark.anyio
async def test_a_sum_in_half_precision_is_looked_at_in_its_length_first() -> None:
    """Of its 64 turns none is one too many, so that nothing is halved."""
    long, searched = Extent(0, 3, 64, 64), list[int | None]()
    assert await after(Judge(columns=judged()), judged(Status.CORRECT, long), searched=searched) is None
    assert searched == [0]


@pytest.mark.anyio
@pytest.mark.parametrize(("shorter", "wrong"), [(judged(), True), (judged(Status.INCORRECT), False)])
async def test_whose_loops_are_short_is_looked_at_with_less_beside_where_longer_sizes_take_too_long(
    shorter: Judged, wrong: bool
) -> None:
    """A look of 128 rows that takes too long would leave it open whether a loop over 8192 columns is right: 16 rows show it."""
    looks = (Longer("columns", {"ROWS": 128, "COLS": 8192}, None, Lighter("lighter", {"ROWS": 4, "COLS": 8192})),)
    right = Judge(columns=TooLong(), lighter=judged())
    assert await after(right, judged(Status.CORRECT, LOOP), looks=looks) is None
    assert right.asked == ["columns", "lighter"]
    judge = Judge(shorter, columns=TooLong(), lighter=judged(Status.INCORRECT))
    found = await after(judge, judged(Status.CORRECT, LOOP), looks=looks)
    assert (found is not None and (found.status, found.sizes) == (Status.INCORRECT, {"ROWS": 4, "COLS": 8192})) is wrong
    assert judge.asked == ["columns", "lighter", "shorter"]


@pytest.mark.anyio
async def test_who_is_wrong_at_longer_sizes_is_wrong() -> None:
    found = await after(Judge(columns=judged(Status.INCORRECT)), judged(Status.CORRECT, LOOP))
    assert found is not None
    assert (found.status, found.sizes) == (Status.INCORRECT, {"COLS": 8192})


@pytest.mark.anyio
@pytest.mark.parametrize("beside", [judged(), judged(Status.INCORRECT), Ended(Status.OUT_OF_BOUNDS, ""), TooLong()])
async def test_a_miss_counts_only_where_what_was_made_smaller_is_not_its_cause(beside: Judged | Exception) -> None:
    """Rows are long at the price of fewer columns: a kernel that needs more columns than these is not to blame."""
    judge = Judge(columns=TooLong(), rows=judged(Status.INCORRECT), beside=beside)
    found = await after(judge, judged(Status.CORRECT, LOOP))
    assert (found is not None) == (isinstance(beside, Judged) and beside.evaluation.correct)


@pytest.mark.anyio
async def test_what_ends_otherwise_says_nothing() -> None:
    """No time, no outputs, or another kernel than that of the full shape."""
    for nothing in (TooLong(), Ended(Status.TIMEOUT, ""), judged(Status.INCORRECT, same_work=False)):
        assert await after(Judge(columns=nothing, rows=nothing), judged(Status.CORRECT, LOOP)) is Undecided.LONGER


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("rows", "beside", "wrong"),
    [(RACE, judged(), True), (TooLong(), judged(), True), (judged(Status.CORRECT, LOOP), judged(), True),
     (RACE, RACE, True), (judged(), judged(), False)],
)  # fmt: skip
async def test_kernels_that_fail_at_longer_sizes_are_wrong_where_no_look_shows_more(
    rows: Judged | Exception, beside: Judged | Exception, wrong: bool
) -> None:
    """`RACE`: programs that race where the grid has several of them."""
    found = await after(Judge(columns=RACE, rows=rows, beside=beside), judged(Status.CORRECT, LOOP))
    assert (found is not None) == wrong
    if found is not None:
        assert (found.status, found.detail, found.sizes) == (Status.RUNTIME_ERROR, "a race", {"COLS": 8192})


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "filled", "long", "wrong"),
    [(Status.OUT_OF_BOUNDS, judged(Status.CORRECT, LOOP), 128, False),
     (Status.OUT_OF_BOUNDS, judged(Status.CORRECT, LOOP), 8192, True),
     (Status.OUT_OF_BOUNDS, judged(Status.INCORRECT), 128, True),
     (Status.OUT_OF_BOUNDS, HELD, 128, True),
     (Status.RUNTIME_ERROR, judged(Status.CORRECT, LOOP), 128, True)],
)  # fmt: skip
async def test_kernels_that_leave_their_tensors_are_not_wrong_for_it_where_filled_blocks_as_long_are_right(
    status: Status, filled: Judged, long: int, wrong: bool
) -> None:
    """What is short stays so at sizes that fill blocks; races are no matter of blocks. Who is right at 128 columns that fill
    blocks may be wrong at the 8192 at which it failed."""
    outside = Ended(status, "outside")
    outside.ran = True
    looks = (Longer("columns", {"COLS": long}, None), Longer("filled", {"COLS": 128}, None))
    found = await after(Judge(columns=outside, filled=filled), judged(Status.CORRECT, LOOP), looks=looks)
    assert isinstance(found, Evaluation) == wrong
    assert wrong or found is Undecided.LONGER


@pytest.mark.anyio
async def test_each_failure_at_longer_sizes_counts() -> None:
    """Filled blocks excuse that at few columns, and not that at many rows."""
    outside, away = (Ended(Status.OUT_OF_BOUNDS, detail) for detail in ("outside", "away"))
    outside.ran = away.ran = True
    looks = (
        Longer("columns", {"ROWS": 16, "COLS": 128}, None), Longer("rows", {"ROWS": 4096, "COLS": 96}, None),
        Longer("filled", {"ROWS": 128, "COLS": 128}, None),
    )  # fmt: skip
    judge = Judge(columns=outside, rows=away, filled=judged(Status.CORRECT, LOOP))
    found = await after(judge, judged(Status.CORRECT, LOOP), looks=looks)
    assert (found.status, found.detail) == (Status.OUT_OF_BOUNDS, "away")


@pytest.mark.anyio
async def test_kernels_that_fail_where_fewer_columns_are_the_cause_are_not_wrong() -> None:
    judge = Judge(columns=TooLong(), rows=RACE, beside=RACE)
    assert await after(judge, judged(Status.CORRECT, LOOP)) is Undecided.LONGER


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("says", "short", "hiding", "found"),
    [
        ({"rows": judged()}, (), ("columns",), None),  # where columns are long nothing shows
        ({"rows": judged(Status.INCORRECT), "beside": judged()}, (), ("columns",), Status.INCORRECT),
        ({"rows": judged(Status.INCORRECT), "beside": judged(Status.INCORRECT)}, (), ("columns",), Undecided.LONGER),
        ({"rows": TooLong()}, (), ("columns",), Undecided.LONGER),
        ({}, (), ("columns", "rows"), Undecided.LONGER),
        ({"columns": judged()}, (LOOP,), ("rows",), None),  # which the loop's look has shown
        ({"columns": judged(), "rows": judged()}, (LOOP,), ("columns",), None),
    ],
)
async def test_who_is_right_must_be_right_where_places_are_told_apart(
    says: dict[str, Judged | Exception], short: tuple[Extent, ...], hiding: tuple[str, ...], found: Status | Undecided | None
) -> None:
    judge = Judge(**says)
    other = await after(judge, judged(Status.CORRECT, *short), hiding=(PROBLEM.source, *hiding))
    assert judge.asked == [*says]
    assert (other.status if isinstance(other, Evaluation) else other) == found


@pytest.mark.anyio
async def test_who_is_right_must_be_right_where_sums_of_whole_numbers_are_as_wide_as_at_full_shape() -> None:
    judge = Judge(rows=judged(Status.INCORRECT), beside=judged())
    found = await after(judge, judged(), wide=(PROBLEM.source, "columns"))
    assert found is not None and (found.status, judge.asked) == (Status.INCORRECT, ["rows", "beside"])
    assert await after(Judge(rows=judged()), judged(), wide=(PROBLEM.source, "columns")) is None


@pytest.mark.anyio
async def test_a_look_that_takes_too_long_is_made_where_all_else_is_smaller() -> None:
    lighter = Lighter("light", {"ROWS": 2, "COLS": 8192})
    looks = (Longer("columns", {"ROWS": 16, "COLS": 8192}, None, lighter),)
    for status in (Status.CORRECT, Status.INCORRECT):
        judge = Judge(judged(), columns=TooLong(), light=judged(status))
        other = await after(judge, judged(Status.CORRECT, LOOP), looks=looks)
        assert judge.asked == ["columns", "light", *["shorter"] * (status is Status.INCORRECT)]
        assert other is None if status is Status.CORRECT else (other.status, other.sizes) == (status, lighter.sizes)
