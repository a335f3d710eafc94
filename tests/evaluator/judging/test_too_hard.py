"""Rounds that are too hard to say something of candidates."""

from __future__ import annotations

import math

import pytest
import torch

from rlkernel.evaluator.judging.errors.own_error import REFERENCE_FACTOR, OwnError
from rlkernel.evaluator.judging.errors.tolerance import FLOOR
from rlkernel.evaluator.judging.too_hard import LOOSE, MOST, TIGHT, as_exact, as_tight, bearable, hardest, not_finite, resolved
from rlkernel.evaluator.messages.judgement import Stress

FLOAT32 = FLOOR[torch.float32]


@pytest.mark.parametrize(
    ("now", "usually", "borne"),
    [
        (1e-4, 1e-6, True),  # a hundred times as much, and little
        (0.99 * LOOSE / REFERENCE_FACTOR, 1e-3, True),
        (1.01 * LOOSE / REFERENCE_FACTOR, 1e-3, False),
        (0.04, 0.03, True),  # it errs as much as ever
    ],
)
def test_stress_under_which_the_reference_errs_by_so_much_that_anything_is_right_is_too_much(
    now: float, usually: float, borne: bool
) -> None:
    """The state of a delta rule grows with each step where keys are three times as long, and what is rounded with it: chunks of
    64 steps, which are right, differed by a third. What other constants make of it has nothing milder beside it."""
    assert as_exact([OwnError(norm=now)], [OwnError(norm=usually)]) is borne


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_what_is_not_finite_in_each_dtype(dtype: torch.dtype) -> None:
    most = min(MOST, torch.finfo(dtype).max)
    assert not_finite([torch.tensor([most, -most], dtype=dtype), torch.arange(3)]) == (False, False, False)
    assert not_finite([torch.tensor([1.0, -math.inf], dtype=dtype)]) == (False, True, True)
    assert not_finite([torch.tensor([1.0, math.nan], dtype=dtype)]) == (True, False, False)
    assert not_finite([torch.tensor([-2 * MOST, math.nan], dtype=dtype)]) == (True, dtype is torch.float16, True)


def test_codes_without_values_are_finite() -> None:
    assert not_finite([torch.ones(4).to(torch.float8_e8m0fnu), torch.empty(0)]) == (False, False, False)


@pytest.mark.parametrize(
    ("found", "usually", "borne"),
    [
        ((False, False, False), (False, False, False), True),
        ((False, True, True), (False, True, True), True),  # a mask fills with infinities in each round
        ((True, False, False), (False, True, True), False),  # NaN is new
        ((False, False, True), (False, False, False), False),  # it grows
    ],
)
def test_a_round_may_be_as_little_finite_as_usually(found: tuple[bool, ...], usually: tuple[bool, ...], borne: bool) -> None:
    assert bearable(found, [OwnError()], usually, [OwnError()]) is borne


@pytest.mark.parametrize(
    ("now", "usually", "tight"),
    [
        (0.99 * TIGHT * FLOAT32 / REFERENCE_FACTOR, 0.0, True),  # the bound is a quarter of a floor wider
        (1.01 * TIGHT * FLOAT32 / REFERENCE_FACTOR, 0.0, False),
        (1.99 * FLOAT32, FLOAT32, True),  # twice of what is usual
        (2.01 * FLOAT32, FLOAT32, False),
    ],
)
def test_rows_at_the_edge_may_make_bounds_hardly_wider(now: float, usually: float, tight: bool) -> None:
    assert as_tight([OwnError(norm=now)], [OwnError(norm=usually)], [torch.float32]) is tight


def test_float32_is_exact_where_half_precision_is_out_of_range() -> None:
    assert resolved([OwnError(norm=0.99 * FLOAT32 / REFERENCE_FACTOR)])
    assert not resolved([OwnError(), OwnError(norm=1.01 * FLOAT32 / REFERENCE_FACTOR)])


@pytest.mark.parametrize(
    ("found", "tried"),
    [
        ((), (Stress.NONE,)),
        ((Stress.VARIED,), (Stress.VARIED, Stress.NONE)),
        (
            (Stress.UNEVEN, Stress.SCALED),
            (Stress.EXTREME, Stress.UNEVEN, Stress.SCALED, Stress.LESS, Stress.LEAST, Stress.NONE),
        ),
    ],
)
def test_the_hardest_is_tried_first(found: tuple[Stress, ...], tried: tuple[Stress, ...]) -> None:
    assert hardest(found) == tried
