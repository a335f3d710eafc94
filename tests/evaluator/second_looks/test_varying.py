"""Looks at other values of sizes, at which a number may be right by chance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlkernel.evaluator.cpu_judge import Judged, TooLong
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.undecided import Undecided
from rlkernel.evaluator.messages.oracle import Longer
from rlkernel.types import Status
from tests.evaluator.second_looks.doubles import (
    PROBLEM,
    RACE,
    Judge,
    after,
    judged,
)

VARIED = (Longer("both", {"ROWS": 8, "COLS": 48}, None), Longer("wider", {"ROWS": 16, "COLS": 192}, None),
          Longer("more", {"ROWS": 32, "COLS": 96}, None))  # fmt: skip
OWN = "assert x.shape == (4096, 8192)\n"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("says", "asked", "status"),
    [
        ({"both": judged()}, ["both"], Status.CORRECT),
        ({"both": TooLong(), "wider": judged(), "more": judged()}, ["both", "wider", "more"], Status.CORRECT),
        # 16 rows may be right by chance
        ({"both": TooLong(), "wider": judged(), "more": judged(Status.INCORRECT)}, ["both", "wider", "more"], Status.INCORRECT),
        ({"both": judged(Status.INCORRECT), "wider": judged(Status.INCORRECT)}, ["both", "wider"], Status.INCORRECT),
        ({"both": judged(Status.INCORRECT), "wider": judged(), "more": judged()}, ["both", "wider", "more"], Status.CORRECT),
        ({"both": TooLong(), "wider": judged(), "more": RACE}, ["both", "wider", "more"], None),
    ],
)
async def test_who_is_excused_at_smaller_sizes_must_be_right_at_other_values_of_each(
    says: dict[str, Judged | Exception], asked: list[str], status: Status | None
) -> None:
    """Of the last nobody knows, so that the longer looks go on."""
    judge = Judge(**{PROBLEM.source: judged()}, columns=judged(Status.INCORRECT), rows=judged(Status.INCORRECT), **says)
    found = await after(judge, Ended(Status.RUNTIME_ERROR, "in forward"), OWN, traced=[], varied=VARIED)
    assert judge.asked[1 : 1 + len(asked)] == asked
    if status is None:
        assert found.status is Status.INCORRECT and judge.asked[4:] != []
    else:
        assert found.status is status and judge.asked[1:] == asked


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("says", "wrong"),
    [
        ({"both": judged()}, False),
        ({"both": judged(Status.INCORRECT), "wider": judged(Status.INCORRECT)}, True),
        ({"both": judged(Status.INCORRECT), "wider": judged(), "more": judged()}, False),
        ({"both": TooLong(), "wider": judged(Status.INCORRECT), "more": TooLong()}, False),  # one look is too few
        ({"both": RACE, "wider": RACE, "more": TooLong()}, False),  # sizes are smaller in the first
        ({"both": judged(Status.INCORRECT), "wider": RACE}, True),
    ],
)
@pytest.mark.parametrize(("counts", "code"), [(True, ""), (False, "row * 96")])
async def test_who_may_be_right_by_chance_must_be_right_at_other_sizes(
    says: dict[str, Judged | Exception], wrong: bool, counts: bool, code: str
) -> None:
    """The reference divides by a count, or the text has the number of columns at the first sizes."""
    judge = Judge(**says)
    found = await after(judge, judged(), code, varied=VARIED, counts=counts)
    assert judge.asked == [*says]
    if wrong:
        last = says["wider"]
        status = last.status if isinstance(last, Ended) else Status.INCORRECT
        assert (found.status, found.sizes) == (status, {"ROWS": 16, "COLS": 192})
    else:
        assert found is None


@pytest.mark.anyio
async def test_blocks_that_are_not_filled_excuse_nobody_who_was_right_with_such() -> None:
    wrong = replace(judged(Status.INCORRECT), unfilled=True)
    for unfilled in (False, True):
        judge = Judge(both=wrong, wider=wrong, more=wrong)
        found = await after(judge, replace(judged(), unfilled=unfilled), varied=VARIED, counts=True)
        assert (found is not None) is unfilled


@pytest.mark.anyio
async def test_who_is_excused_at_longer_sizes_must_be_right_at_other_values_of_those_that_are_not_full() -> None:
    """8192 columns are as at full shape, and 16 rows are not. Where no other number of them could be judged, it is undecided."""
    source = PROBLEM.source.replace("96", "8192")
    looks = (Longer(source, {"ROWS": 16, "COLS": 8192}, None),)
    fewer = (Longer("fewer", {"ROWS": 8, "COLS": 8192}, None),)
    for says, expected in ((judged(), Status.CORRECT), (judged(Status.INCORRECT), Status.INCORRECT)):
        judge = Judge(**{source: judged()}, fewer=says)
        found = await after(judge, judged(Status.INCORRECT), "COLUMNS = 8192", looks=looks, varied=fewer)
        assert (found.status, judge.asked) == (expected, [source, "fewer"])
    unknown = Judge(**{source: judged()}, fewer=TooLong())
    for varied in (fewer, ()):
        assert await after(unknown, judged(Status.INCORRECT), "COLUMNS = 8192", looks=looks, varied=varied) is Undecided.OWN
