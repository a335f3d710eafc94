"""Inputs that are the same in every draw: which they are, and what stands in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.evaluator.judging.inputs.fixed import (
    borne,
    drawn_whole,
    fixed_masks,
    fixed_places,
    moved_on,
    repeated,
    turned_around,
    whole_copies,
)
from rlkernel.evaluator.judging.inputs.places import places
from rlkernel.evaluator.judging.inputs.stress import stressed
from rlkernel.evaluator.messages.judgement import Places, Stress

TRIANGLE = torch.ones(8, 8, dtype=torch.bool).tril()


class Forward(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


@pytest.mark.parametrize(
    ("given", "mask", "place"),
    [
        (TRIANGLE, True, False),
        (TRIANGLE.float(), True, False),
        (TRIANGLE.int(), True, False),
        (torch.full((8, 8), -torch.inf).triu(1), True, False),
        (torch.arange(8), False, True),
        (torch.arange(5, 13).expand(2, 8), False, True),
        (torch.tensor([3, 1, 2, 0]), False, True),
        (torch.arange(0, 64, 8), False, False),  # where parts begin
        (torch.arange(8).repeat_interleave(2), False, False),  # numbers of sorted segments
        (torch.arange(8).float(), False, False),  # which is scaled
        (torch.ones(8, dtype=torch.int64), False, False),  # which gets holes
        (torch.tensor([True]), False, False),
    ],
)
def test_what_is_always_the_same(given: torch.Tensor, mask: bool, place: bool) -> None:
    drawn, again = [torch.randn(4), given], [torch.randn(4), given.clone()]
    assert fixed_masks(drawn, again) == (1,) * mask and fixed_places(drawn, again) == (1,) * place
    other = [torch.randn(4), given.flip(-1) if given.dtype is not torch.bool else ~given]
    if mask or place:
        assert not fixed_masks(drawn, other) and not fixed_places(drawn, other)


def test_nothing_is_done_to_numbers_beside_the_bounds_of_segments() -> None:
    bounds, order, rows = torch.tensor([0, 8, 16]), torch.tensor([3, 1, 2, 0]), torch.randn(16, 4)
    assert fixed_places([bounds, order, rows], [bounds, order, rows]) == ()
    assert fixed_places([order, rows], [order, rows]) == (0,)


def test_segments_of_several_lengths_follow_one_another_in_another_order() -> None:
    bounds, even, rows = torch.tensor([0, 11, 16, 40, 64]), torch.arange(0, 65, 16), torch.randn(64, 4)
    assert fixed_places([bounds, rows], [bounds, rows]) == (0,)
    assert fixed_places([even, rows], [even, rows]) == (), "there is no other order"
    lengths = bounds.diff()
    assert fixed_places([bounds, rows, lengths], [bounds, rows, lengths]) == (), "lengths belong to them"
    assert turned_around(bounds).tolist() == [0, 5, 29, 53, 64]
    assert turned_around(bounds.int()).dtype is torch.int32


@pytest.mark.parametrize("size", range(2, 20))
def test_a_mask_that_is_turned_around_is_another_one_with_as_many_in_each_row(size: int) -> None:
    triangle, even = torch.ones(size, size).tril(), (torch.arange(size) % 2 == 0).expand(2, size)
    for mask in (triangle, even):
        found = turned_around(mask)
        assert torch.equal(found.sum(-1), mask.sum(-1)) and not torch.equal(found, mask)
    assert torch.equal(turned_around(torch.arange(size)).sort().values, torch.arange(size))
    assert moved_on(torch.arange(size)).tolist() == list(range(1, size + 1))


def test_places_are_moved_on_where_that_is_borne_and_are_turned_around_otherwise() -> None:
    assert borne((0,), (1, 2), (1,), lambda turned, moved: True) == ((0, 2), (1,))
    assert borne((0,), (1, 2), (1,), lambda turned, moved: not moved) == ((0, 1, 2), ())
    assert borne((0,), (1, 2), (1,), lambda turned, moved: False) == ((), ())
    assert borne(tuple(range(9)), (), (), lambda turned, moved: True) == ((), ()), "too many"


def test_what_a_round_has_in_their_place() -> None:
    def draw(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        return [torch.randn(8, 8), TRIANGLE, torch.arange(8)]

    def found(function: Callable[..., Any], stress: Stress = Stress.SCALED) -> Places:
        return places(lambda: Forward(function), draw, (1, 2, 3), stress)

    scores, table = (lambda x, keep, at: x.masked_fill(~keep, -torch.inf).softmax(-1) * at), torch.randn(8)
    assert found(scores) == Places(turned=(1,), moved=(2,))
    assert found(scores, Stress.NONE) == Places()
    assert found(lambda x, keep, at: x * keep + table[at]) == Places(turned=(1, 2))  # there is no ninth row
    assert found(lambda x, keep, at: x / (keep.tril() == keep).all() + at) == Places(moved=(2,))  # another mask gives infinity
    given = stressed(draw(1), Stress.VARIED, Places(turned=(1,), moved=(2,)))
    assert torch.equal(given[0], draw(1)[0]) and given[2].tolist() == list(range(1, 9))
    assert not torch.equal(given[1], TRIANGLE) and torch.equal(given[1].sum(-1), TRIANGLE.sum(-1))
    (whole,) = stressed([TRIANGLE.float() / 2], Stress.SCALED, Places(turned=(0,)))
    assert torch.equal(whole, 4.0 * turned_around(TRIANGLE.float()))
    (truths,) = stressed([TRIANGLE.float()], Stress.SCALED, Places(turned=(0,)))
    assert torch.equal(truths, turned_around(TRIANGLE.float()))


def test_a_list_of_whole_numbers_has_no_rows_that_are_copies() -> None:
    one, other = torch.tensor([3, 0, 2, 1, 3, 0, 2, 1, 3]), torch.tensor([1, 2, 0, 3, 1, 2, 0, 3, 1])
    drawn = drawn_whole([one, one], [other, other])
    assert (drawn, whole_copies([one, one], drawn), repeated([one, one], drawn)) == ([0, 1], (1,), ())
