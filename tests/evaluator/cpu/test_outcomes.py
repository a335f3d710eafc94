"""What comparisons come to at full shape, and hardly where results are compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rlkernel.evaluator.cpu.extents import Extents, is_lost, is_side
from rlkernel.evaluator.cpu.outcomes import PARTS, Outcomes
from rlkernel.evaluator.pool import Pool
from rlkernel.types import Status
from tests.red_team import cases

PROGRAM: Any = SimpleNamespace(functions=[SimpleNamespace(source="a")])
AT = 40


def extents(*made: list[bool], elsewhere: list[bool] | None = None) -> Extents:
    """What is known of a launch in which a comparison came to this, and to something else in programs that are not followed."""
    outcomes, found = Outcomes(), Extents()
    for one in made:
        outcomes.note(AT, np.array(one), None if elsewhere is None else np.array(elsewhere))
    for at, answer, share in outcomes.shares():
        found.note_outcome("a", at, answer, share)
    return found


@pytest.mark.parametrize(
    ("here", "short"),
    [
        ([True] * 64, [False]),  # nothing was left out
        ([True] * 63 + [False], [False]),  # less than one in 32
        ([True] * 62 + [False] * 2, []),
        ([False] * 64, [True]),
    ],
)
def test_an_answer_is_short_that_comes_up_for_few_elements(here: list[bool], short: list[bool]) -> None:
    full = extents([True] * 32, [False] * 32)
    found = extents(here).short(full.repeated(PROGRAM), PROGRAM)
    assert [bool(one.place % 2) for one in found] == short
    assert all(not is_side(one.place) and not is_lost(one.place) for one in found)


def test_one_element_shows_what_programs_come_to_that_are_not_followed() -> None:
    full = extents([True] * 64, elsewhere=[True, False])
    assert extents([True] * 64).short(full.repeated(PROGRAM), PROGRAM)
    assert not extents([True] * (2 * PARTS), [False] * 4).short(full.repeated(PROGRAM), PROGRAM)


def test_a_quarter_of_its_share_is_enough_for_an_answer_that_is_rare_at_full_shape() -> None:
    full = extents([True] * 98, [False] * 2)
    assert extents([True] * 600, [False]).short(full.repeated(PROGRAM), PROGRAM)
    assert not extents([True] * 199, [False]).short(full.repeated(PROGRAM), PROGRAM)


def test_nothing_is_short_that_never_comes_up_at_full_shape() -> None:
    """Masks of blocks that are filled there leave nothing out."""
    full, here = extents([True] * 64), extents([True] * 40 + [False] * 24)
    assert here.short(full.repeated(PROGRAM), PROGRAM) == ()


@pytest.mark.anyio
async def test_one_step_of_many_is_missed_at_the_sizes_at_which_it_comes_up(pool: Pool) -> None:
    case = cases.load("hostile")["mean_without_ninth_step"]
    found = await pool.evaluate(case.problem, case.code)
    assert found.status is Status.INCORRECT and found.sizes["COLS"] == 4096
