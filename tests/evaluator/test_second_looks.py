"""Second looks: who gets one, and what it says."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rlkernel.evaluator.clock import Clock
from rlkernel.evaluator.cpu_judge import AtFull, Judged, TooLong
from rlkernel.evaluator.ended import Ended
from rlkernel.evaluator.judging.undecided import Undecided, undecided
from rlkernel.evaluator.judging.verdict import MAX_DETAIL
from rlkernel.evaluator.messages.children import CompileRequest, Extent, PriceRequest, RunRequest, TooLarge, TraceRequest
from rlkernel.evaluator.messages.oracle import Lighter, Longer
from rlkernel.evaluator.pool import Pool
from rlkernel.evaluator.second_looks.budget import MOST_WORK, OF_ALL_LOOKS, Budget, work_at_full
from rlkernel.evaluator.second_looks.deciding import SecondLooks
from rlkernel.evaluator.second_looks.looking import out_of_time
from rlkernel.evaluator.second_looks.texts import has_small_sizes, repeated_sizes, without_asserts
from rlkernel.types import Evaluation, Problem, Status

CLOCK = Clock()
PROBLEM = Problem("p", 1, "train", "ROWS = 4096\nCOLS = 8192\nSMALL = {'ROWS': 16, 'COLS': 96}\n")
LOOP, AXIS = Extent(0, 1, 4, 3), Extent(0, 0, 4, 2)
LOOKS = (Longer("columns", {"COLS": 8192}, None), Longer("rows", {"ROWS": 4096}, "beside"))
WHOLE = Longer("ROWS = 4096\nCOLS = 8192\nSMALL = {'ROWS': 4096, 'COLS': 8192}\n", {"ROWS": 4096, "COLS": 8192}, None)


def failing(detail: str) -> Ended:
    """Kernels that ran and failed."""
    end = Ended(Status.RUNTIME_ERROR, detail)
    end.ran = True
    return end


RACE = failing("a race")


def judged(status: Status = Status.CORRECT, *short: Extent, same_work: bool = True) -> Judged:
    return Judged(Evaluation(status, "", matches=status is not Status.INCORRECT), same_work, frozenset(short))


HELD = replace(judged(Status.IMPLAUSIBLE), limited=True)


class Judge:
    """Says what it is told to say of each source, `shorter` of sources that a look makes itself, and remembers which it was asked
    for."""

    def __init__(self, shorter: Judged | None = None, **says: Judged | Exception) -> None:
        self.says, self.shorter = says, shorter
        self.asked: list[str] = []

    async def judge(self, oracle: Any, problem: Problem, *rest: Any, doubted: bool = False) -> Judged:
        made = self.shorter is not None and problem.source not in self.says
        self.asked.append("shorter" if made else problem.source)
        found = self.says.get(problem.source, self.shorter)
        assert found is not None
        if isinstance(found, Exception):
            raise found
        return found


async def after(
    judge: Judge,
    found: Judged | Ended,
    code: str = "",
    searched: list[int | None] | None = None,
    looks: tuple[Longer, ...] = LOOKS,
    traced: list[str] | None = None,
    counts: bool = False,
    varied: tuple[Longer, ...] = (Longer("other", {"ROWS": 8, "COLS": 48}, None),),
    hiding: tuple[str, ...] = (),
    wide: tuple[str, ...] = (),
) -> Any:
    """`searched`: how often longer sizes are halved at least, of those that were searched for. `traced`: where forward was traced
    alone; None where it fails there. `hiding`: the sources of which places are told apart at full shape alone; `wide`: those
    whose sums of whole numbers need more bits there."""

    async def lengthened(
        oracle: Any, problem: Problem, halvings: int | None = 0, *, heads_pay: bool = False
    ) -> tuple[Longer, ...]:  # fmt: skip
        if searched is not None:
            searched.append(halvings)
        return looks

    async def other_values(oracle: Any, problem: Problem) -> tuple[Longer, ...]:
        return varied

    async def brief(oracle: Any, problem: Problem) -> Any:
        hides, sizes = problem.source in hiding, ("small", "full")
        return SimpleNamespace(variants=sizes, counterparts=(), distances=hides, widths=problem.source in wide, counts=counts)

    async def trace(code: str, variants: tuple[str, ...], *rest: Any) -> Any:
        if traced is None:
            raise Ended(Status.RUNTIME_ERROR, "in forward")
        traced.extend(variants)
        return SimpleNamespace(traces=(SimpleNamespace(program=SimpleNamespace(launches=())),), timed=None), ()

    config = SimpleNamespace(limits=SimpleNamespace(run_seconds=120))
    stages = SimpleNamespace(config=config, lengthened=lengthened, varied=other_values, brief=brief, trace=trace)
    looks_again = SecondLooks(stages, judge)  # type: ignore[arg-type]
    return await looks_again.after(SimpleNamespace(), PROBLEM, code, CLOCK, found, AtFull())  # type: ignore[arg-type]


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
async def test_what_no_look_could_decide_is_undecided() -> None:
    """No longer sizes, no time at them, or kernels that fail there while the text has sizes that are not as large."""
    for nothing in (TooLong(), Ended(Status.TIMEOUT, ""), judged(Status.INCORRECT, same_work=False)):
        judge = Judge(columns=nothing, rows=nothing)
        assert await after(judge, judged(Status.INCORRECT), "COLUMNS = 8192") is Undecided.OWN
    assert await after(Judge(), judged(Status.INCORRECT), "COLUMNS = 8192", looks=()) is Undecided.OWN
    assert await after(Judge(), judged(Status.CORRECT, LOOP), looks=()) is Undecided.LONGER
    assert await after(Judge(columns=RACE, rows=RACE), failing("out of bounds")) is None


@pytest.mark.anyio
async def test_who_is_right_at_longer_sizes_says_what_stays_short_there() -> None:
    filled = (Longer("filled", {"ROWS": 16, "COLS": 2048}, None),)
    judge = Judge(filled=judged(Status.CORRECT, LOOP))
    found = await after(judge, replace(judged(Status.INCORRECT), unfilled=True), looks=filled)
    assert found.correct and found.detail == f"judged at ROWS = 16, COLS = 2048 alone: {Undecided.LONGER}"


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


def test_kernels_keep_their_asserts_and_lines_their_numbers() -> None:
    code = "@triton.jit\ndef k(n):\n    assert n\n\ndef f(x):\n    assert x == (\n        8)\n    g(x)\n"
    assert without_asserts(code) == "@triton.jit\ndef k(n):\n    assert n\n\ndef f(x):\n    pass\n\n    g(x)\n"
    assert without_asserts("not Python (") == "not Python ("


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


@pytest.mark.parametrize(
    ("code", "repeated"),
    [
        ("x = 8192", {8192}),
        ("x = 8192\ny = 4096", {4096, 8192}),
        ("COLS = 8192\nBLOCK = 128", set()),
        ("# 8192 columns", set()),
        ("mean = total / 8192.0", {8192}),
        ("mean = total * 0.0001220703125", {8192}),  # 1 / 8192
        ("scale = 0.01105", {8192}),  # 1 / sqrt(8192), rounded
        ("scale = 0.0112", set()),
        (f"x = {10**400}", set()),
        ("not Python (", set()),
    ],
)
def test_sizes_that_a_text_repeats(code: str, repeated: set[int]) -> None:
    """A size of the full shape as a number, but where the constant has the reference's name and is small with it."""
    assert repeated_sizes(PROBLEM, code) == repeated


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("x + row * 96", True),
        ("x + row * (90 + 6)", True),
        ("x + 16 * 96", True),  # all elements
        ("COLS = 8192", False),
        ("grid = (4096, 33554432)", False),
        ("x * 96.5 + 4", False),
        ("# 96 columns", False),
        ("not Python (", False),
    ],
)
def test_sizes_of_the_first_look_that_a_text_has(code: str, found: bool) -> None:
    """16 rows of 96 for 4096 of 8192; a tile of 4 says nothing."""
    assert has_small_sizes(PROBLEM, code, {4096: (16,), 8192: (96,), 33554432: (1536,), 4: (4,)}) is found


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


REFERENCE = """
import torch
import torch.nn as nn
ROWS, COLS = 64, 16384
SMALL = {"ROWS": 3, "COLS": 100}
class Model(nn.Module):
    def forward(self, x):
        return x.sum(1)
def get_inputs():
    return [torch.randn(ROWS, COLS)]
def get_init_inputs():
    return []
"""
SUM = """
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def total(x, y, n, BLOCK: tl.constexpr):
    s = 0.0
    {loop}
        i = start + tl.arange(0, BLOCK)
        s {sign} tl.sum(tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=0.0), axis=0)
        {step}
    tl.store(y + tl.program_id(0), s)

class ModelNew(nn.Module):
    def forward(self, x):
        y = x.new_empty(x.shape[0])
        total[(x.shape[0],)](x, y, x.shape[1], BLOCK={block})
        return y
"""
LOOPS = {
    "for start in range(0, n, BLOCK):": "",
    "for start in tl.range(0, n, BLOCK):": "",
    "start = 0\n    while start < n:": "start += BLOCK",
    "start = 0\n    while (start < n) & (start >= 0):": "start += BLOCK",
}


@pytest.mark.anyio
@pytest.mark.parametrize(("loop", "block"), [*itertools.product(LOOPS, (128, 2048)), *((loop, 8192) for loop in [*LOOPS][:1])])
async def test_a_sum_that_keeps_its_last_block_is_wrong_whatever_the_block(pool: Pool, loop: str, block: int) -> None:
    """Every block is longer than the 100 columns at which sums are compared first, and shorter than the 16384 there are."""
    problem = Problem("sum", 1, "train", REFERENCE)
    code = SUM.replace("{loop}", loop).replace("{step}", LOOPS[loop]).replace("{block}", str(block))
    wrong = await pool.evaluate(problem, code.replace("{sign}", "="))
    assert wrong.status is Status.INCORRECT, wrong.detail
    assert wrong.sizes["COLS"] > block
    right = await pool.evaluate(problem, code.replace("{sign}", "+="))
    assert right.status is Status.CORRECT, right.detail
    assert right.sizes == {"ROWS": 3, "COLS": 100}


TUNER = """@triton.autotune(
    configs=[triton.Config({"BLOCK": block}) for block in (128, 256, 512)], key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, nargs, **kwargs: configs[1:] if nargs["rows"] == 64 else configs},
)
@triton.jit"""


@pytest.fixture
def asked(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The questions to children, each with its answer."""
    made: list[Any] = []
    job = pool._stages.job

    async def noted(kind: str, question: Any, *rest: Any, **more: Any) -> Any:
        answer = await job(kind, question, *rest, **more)
        made.append((question, answer[0]))
        return answer

    monkeypatch.setattr(pool._stages, "job", noted)
    return made


@pytest.mark.anyio
async def test_what_is_known_at_full_shape_is_not_found_again(pool: Pool, asked: list[Any]) -> None:
    """A second look traces one size, and neither compiles nor prices. Configurations are those that are kept at full shape."""
    code = SUM.replace("{loop}", "for start in range(0, n, BLOCK):").replace("{step}", "").replace("{sign}", "+=")
    code += "# no other test judges this text\n"
    tuned = code.replace("@triton.jit", TUNER).replace("n, BLOCK: tl", "n, rows, BLOCK: tl")
    tuned = tuned.replace("BLOCK={block}", "x.shape[0]")
    for text, first in ((code.replace("{block}", "128"), []), (tuned, [PriceRequest])):
        asked.clear()
        found = await pool.evaluate(Problem("sum", 1, "train", REFERENCE), text)
        assert found.status is Status.CORRECT, found.detail
        kinds = [type(question) for question, _ in asked]
        assert kinds == [TraceRequest, *first, CompileRequest, RunRequest, TraceRequest, RunRequest]
        (ran, told), (traced, _), (again, left) = asked[-3:]
        assert (len(asked[0][0].variants), len(traced.variants)) == (2, 1)
        assert (ran.priced, again.priced, left.priced) == (None, told.priced, None)
        assert (again.full, again.configs) == (ran.full, ran.configs)
        counts = [len(launch.configs) for request in (ran, again) for launch in request.program.launches]
        assert counts == ([2, 2] if first else [1, 1])
        assert (told.short, left.short) == ((Extent(0, 3, 2, 2),), ())


@pytest.mark.anyio
async def test_a_look_whose_figures_count_prices_the_candidate_itself(pool: Pool, asked: list[Any]) -> None:
    """It is made for 16384 columns, not as a number of its text, so that it fails at 100 of them; it is compiled once."""
    code = SUM.replace("{loop}", "for start in range(0, n, BLOCK):").replace("{step}", "").replace("{sign}", "+=")
    code = code.replace("x.shape[1], BLOCK={block}", "int('16384'), BLOCK=128")
    found = await pool.evaluate(Problem("sum", 1, "train", REFERENCE), code)
    assert (found.status, found.sizes["COLS"]) == (Status.CORRECT, 16384)
    kinds = [type(question) for question, _ in asked if not isinstance(question, TraceRequest)]
    assert (kinds.count(CompileRequest), kinds.count(PriceRequest)) == (1, 0)
    runs = [(question, answer) for question, answer in asked if isinstance(question, RunRequest)]
    assert isinstance(runs[0][1], TooLarge)  # all rows at once
    first, rest = runs[1][0], runs[2][0]  # of the look: it is doubted
    assert (first.priced, rest.before, rest.priced is not None) == (None, len(first.rounds), True)


@pytest.mark.anyio
async def test_what_fails_at_full_shape_is_run_once(pool: Pool, asked: list[Any]) -> None:
    """1.7 million programs of 2,048 elements each count beyond 32 bits, and come back below the tensor; none does at 300."""
    code = """
import torch, triton
import triton.language as tl

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[(x.numel(),)](x, y, x.numel(), BLOCK=2048)
        return y
"""
    reference = REFERENCE.replace("ROWS, COLS = 64, 16384", "ROWS, COLS = 128, 13000").replace("x.sum(1)", "x * 2")
    found = await pool.evaluate(Problem("double", 1, "train", reference), code)
    assert (found.status, [type(question) for question, _ in asked].count(TraceRequest)) == (Status.OUT_OF_BOUNDS, 1), (
        found.detail
    )


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("forward", "work", "correct"),
    [
        ("x.sum(1, keepdim=True)", "tl.store(y + row, tl.sum(tl.load(x + at, mask=i < n, other=1.0)))", True),
        ("x * 2", "tl.store(y + at, 3 * tl.load(x + at, mask=i < n), mask=i < n)", False),
    ],
)
async def test_who_is_wrong_element_by_element_is_looked_at_no_more_where_blocks_are_filled(
    pool: Pool, asked: list[Any], forward: str, work: str, correct: bool
) -> None:
    """A mask leaves out 28 of 128 elements at the first sizes, and none at full shape. A sum that takes those for 1 is right;
    where each element goes its own way, they change no other one."""
    code = f"""
import torch, triton
import triton.language as tl

@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    at = row * n + i
    {work}

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = x.new_empty(x.shape[0], {"1" if correct else "x.shape[1]"})
        rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
"""
    found = await pool.evaluate(Problem("rows", 1, "train", REFERENCE.replace("x.sum(1)", forward)), code)
    traces = [type(question) for question, _ in asked].count(TraceRequest)
    assert (found.correct, traces > 1) == (correct, correct), found.detail


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
async def test_who_is_wrong_at_the_full_shape_is_excused_by_no_other_sizes() -> None:
    """Who overflows by chance is right at some sizes."""
    judge = Judge(rows=judged(), **{WHOLE.source: judged(Status.INCORRECT)})
    assert await after(judge, judged(Status.INCORRECT), "8192", looks=(WHOLE, LOOKS[1])) is None
    assert judge.asked == [WHOLE.source]


@pytest.mark.anyio
async def test_a_look_that_takes_too_long_is_made_where_all_else_is_smaller() -> None:
    lighter = Lighter("light", {"ROWS": 2, "COLS": 8192})
    looks = (Longer("columns", {"ROWS": 16, "COLS": 8192}, None, lighter),)
    for status in (Status.CORRECT, Status.INCORRECT):
        judge = Judge(judged(), columns=TooLong(), light=judged(status))
        other = await after(judge, judged(Status.CORRECT, LOOP), looks=looks)
        assert judge.asked == ["columns", "light", *["shorter"] * (status is Status.INCORRECT)]
        assert other is None if status is Status.CORRECT else (other.status, other.sizes) == (status, lighter.sizes)


@pytest.mark.parametrize(("run_seconds", "core_seconds"), [(20, 40 / 3), (120, 40.0)])
def test_a_look_at_the_full_shape_takes_what_a_run_may_take(run_seconds: int, core_seconds: float) -> None:
    """MOST_WORK is 10 s of a core: 2/3 of the run's seconds, and at most 40 s."""
    assert work_at_full(run_seconds) / MOST_WORK * 10 == pytest.approx(core_seconds)
