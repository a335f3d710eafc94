"""Rows at the edge of what a formula bears: tiny ones and ones below zero, and along which axes a reference bears them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from rlkernel.evaluator.judging.inputs.edges import BELOW, edged, with_rows_of
from rlkernel.evaluator.judging.inputs.nudging import nudged
from rlkernel.evaluator.judging.inputs.places import places
from rlkernel.evaluator.judging.inputs.stress import stressed
from rlkernel.evaluator.messages.judgement import Edge, Places, Stress

SEEDS = (1, 2, 3)


class Forward(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def found(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[Edge, ...]:
    def draw(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        return [torch.randn(shape, dtype=dtype) for shape in shapes]

    return places(lambda: Forward(function), draw, SEEDS, Stress.EXTREME).edges


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [3, 4, 8, 16, 37, 64])
@pytest.mark.parametrize("low", [True, False])
def test_tiny_and_low_rows_lie_apart_and_all_others_stay(dtype: torch.dtype, axis: int, size: int, low: bool) -> None:
    torch.manual_seed(0)
    shape = (size, 24) if axis == 0 else (24, size)
    # Older versions of torch draw zeros in bfloat16, one number in 150, and zeros stay.
    before, edge = 8.0 * torch.randn(shape).to(dtype), Edge(0, axis, low)
    after = edged(before.clone(), edge)
    other = [dim for dim in range(2) if dim != axis]
    sizes, old = after.abs().amax(other), before.abs().amax(other)
    tiny = sizes <= old * 2.0**-13
    negative = (after.amax(other[0]) <= -0.99 * BELOW) & ~tiny if low else torch.zeros_like(tiny)
    changed = (after != before).any(other[0])
    assert int(tiny.sum()) == max(1, size // 8) and int(negative.sum()) == (max(1, size // 8) if low else 0)
    assert torch.equal(changed, tiny | negative)
    if low:
        rows = after.movedim(axis, 0)[negative].double()
        assert 5 < float(rows.mean().abs() / rows.std()) < 40


def test_rows_may_lie_below_zero_alone() -> None:
    torch.manual_seed(0)
    x = 8.0 * torch.randn(16, 24)
    both, low = edged(x.clone(), Edge(0, 0, True)), edged(x.clone(), Edge(0, 0, True, tiny=False))
    assert (low != x).any(1).nonzero().reshape(-1).tolist() == [8, 9]
    assert torch.equal(low[8:10], both[8:10])
    assert torch.equal(with_rows_of(x.clone(), both, Edge(0, 0, True, tiny=False)), low)


@pytest.mark.parametrize("count", [2, 8])
def test_rows_are_not_so_small_that_a_reference_cannot_tell_its_indices(count: int) -> None:
    low = (Edge(0, 0, True, tiny=False),)
    assert found(lambda x: torch.softmax(x, -1).topk(count), (256, 64)) == low
    assert found(lambda x: torch.softmax(x, -1).argsort(-1), (256, 64)) == low
    assert found(lambda x: torch.softmax(x, -1).sort(-1), (256, 64)) == low
    # The numbers themselves are told apart, however small they are.
    assert found(lambda x: x.topk(count), (256, 64)) == (Edge(0, 0, True, small=True),)
    assert found(lambda x: x.argmax(-1), (256, 64)) == (Edge(0, 0, True, small=True),)


@pytest.mark.parametrize(
    ("function", "small"),
    [
        (lambda x: x / x.abs().mean(1, keepdim=True), True),
        (lambda x: x.abs().sqrt(), True),
        (lambda x: torch.relu(x).square(), True),
        (lambda x: x.sign(), True),
        (lambda x: x / (x.abs().mean(1, keepdim=True) + 1e-5), False),
        (lambda x: x / (x.abs().mean(1, keepdim=True) + torch.full((8, 1), 1e-5)), False),
        (lambda x: F.layer_norm(x, (16,), eps=0.5), False),
        (lambda x: F.normalize(x, dim=1, eps=1e-3), False),
        (lambda x: F.rms_norm(x, (16,)), False),
        (lambda x: x / (1.0 + x.abs().sum(1, keepdim=True)), False),  # its own number is no eps
        (lambda x: x * (1.0 - 1.0 / x.norm(dim=1, keepdim=True)).clamp(min=0.0), False),  # nor is a limit
        (lambda x: (x, torch.softmax(x, 1)), False),
    ],
)
def test_rows_are_only_small_where_a_reference_has_no_number_of_its_own(function: Any, small: bool) -> None:
    assert found(function, (8, 16)) == (Edge(0, 0, True, small=small),)


def test_small_rows_are_as_many_as_tiny_ones() -> None:
    torch.manual_seed(0)
    x = torch.randn(32, 24)
    tiny, small = edged(x.clone(), Edge(0, 0, True)), edged(x.clone(), Edge(0, 0, True, small=True))
    assert torch.equal(small[8:12], x[8:12] * 2.0**-7)
    assert torch.equal(small[:8], tiny[:8]) and torch.equal(small[12:], tiny[12:])


def test_half_of_the_tiny_rows_are_tinier_and_zeros_stay_zeros() -> None:
    torch.manual_seed(0)
    x = torch.tril(torch.randn(32, 32))
    after = edged(x.clone(), Edge(0, 0, True))
    assert torch.equal(after[8:10], x[8:10] * 2.0**-13) and torch.equal(after[10:12], x[10:12] * 2.0**-20)
    assert not after.triu(1).any()


def test_one_row_of_two_is_tiny_and_none_is_low() -> None:
    assert found(lambda x: F.group_norm(x, 2), (2, 8, 16)) == (Edge(0, 0, False),)


@pytest.mark.parametrize(
    ("function", "shape", "edge"),
    [
        (lambda x: F.layer_norm(x, (16,)), (8, 16), Edge(0, 0, True)),
        (lambda x: F.layer_norm(x.t(), (16,)).t(), (16, 8), Edge(0, 1, True)),
        (lambda x: torch.softmax(x, 1), (8, 16), Edge(0, 0, True)),
        (lambda x: torch.softmax(x, 0), (16, 8), Edge(0, 1, True)),
        (lambda x: F.batch_norm(x, None, None, training=True), (16, 8, 9), Edge(0, 1, True)),
        (lambda x: F.max_pool2d(x, 2), (2, 4, 8, 8), Edge(0, 1, True, small=True)),
        (lambda x: F.group_norm(x, 4), (8, 16, 9), Edge(0, 0, True)),
        (lambda x: torch.tanh(x), (8, 16), Edge(0, 0, True)),
        (lambda x: x.pow(4).mean(1), (32, 64), Edge(0, 0, False, small=True)),  # what is low would be most of the output
        (lambda x: F.cross_entropy(x, torch.zeros(8, dtype=torch.int64)), (8, 16), Edge(0, 0, True)),  # a total
    ],
)
def test_rows_are_those_that_a_reference_treats_on_their_own(function: Any, shape: tuple[int, ...], edge: Edge) -> None:
    assert found(function, shape) == (edge,)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_maximum_has_low_rows_and_its_place_in_half_precision_tiny_ones_alone(axis: int) -> None:
    """Half precision has equal numbers far from zero, of which any is the largest."""
    for function in (lambda x: x.amax(1 - axis), lambda x: x.argmax(1 - axis)):
        (edge,) = found(function, (32, 32))
        assert edge.axis == axis and edge.low
    (half,) = found(lambda x: x.argmax(1 - axis), (32, 32), dtype=torch.bfloat16)
    assert not half.low


def test_operands_of_a_product_have_rows_and_columns() -> None:
    assert [(edge.place, edge.axis) for edge in found(torch.matmul, (16, 24), (24, 32))] == [(0, 0), (1, 1)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x / x.norm(),  # as a whole
        lambda x: x.reciprocal(),  # of what is tiny it would be huge
        lambda x: torch.fft.fft2(x).abs(),
    ],
)
def test_there_are_none_where_a_reference_does_not_bear_them(function: Any) -> None:
    assert found(function, (8, 16)) == ()


@pytest.mark.parametrize(
    ("function", "shapes", "most"),
    [
        (lambda x: torch.softmax(x, 1), [(8, 16)], 4),  # as it is, other rows, these rows, all of it tiny
        (torch.matmul, [(16, 24), (24, 32)], 10),
        (F.scaled_dot_product_attention, [(3, 4, 8, 16)] * 3, 10),
        (lambda x: x * float("nan"), [(8, 16)], 1),
    ],
)
def test_a_reference_is_called_a_few_times_for_them(function: Any, shapes: list[tuple[int, ...]], most: int) -> None:
    calls = 0

    def counted(*inputs: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        result: torch.Tensor = function(*inputs)
        return result

    found(counted, *shapes)
    assert calls == most


def test_a_reference_that_refuses_them_has_none_and_symmetric_matrices_stay_so() -> None:
    def refusing(x: torch.Tensor) -> torch.Tensor:
        assert float(x.abs().amin(1).amax()) > 0 and float(x.amin()) > -100 and float(x.abs().amax(1).amin()) > 1
        return x + 1

    assert found(refusing, (8, 16)) == ()

    def draw(seed: int) -> list[Any]:
        torch.manual_seed(seed)
        half = torch.randn(8, 8)
        return [half + half.t()]

    assert places(lambda: Forward(torch.relu), draw, SEEDS, Stress.EXTREME).edges == ()


def test_rows_come_on_top_of_all_other_stress_and_in_the_hardest_round_alone() -> None:
    torch.manual_seed(0)
    x, edge = torch.randn(16, 8), Edge(0, 0, True)
    there = Places(drawn=(0,), edges=(edge,))
    (uneven,), (extreme,) = stressed([x], Stress.UNEVEN, there), stressed([x], Stress.EXTREME, there)
    assert torch.equal(extreme, edged(uneven.clone(), edge)) and not torch.equal(extreme, uneven)
    (without,) = stressed([x], Stress.EXTREME, Places(drawn=(0,)))
    assert torch.equal(without, uneven)


def test_what_their_rounding_would_do_widens_no_bound() -> None:
    torch.manual_seed(0)
    x, edge = torch.randn(16, 8).bfloat16(), Edge(1, 0, True)
    first, second = nudged([x, x], (edge,))
    assert bool((first != x.double()).any(1).all()), "an input of which nothing is said"
    moved = (second != x.double()).any(1)
    assert moved.tolist() == [place not in (4, 5, 8, 9) for place in range(16)]
    assert torch.equal(with_rows_of(torch.zeros(16, 8), x.float(), edge)[4:6], x[4:6].float())
