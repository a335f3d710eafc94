"""Scaled and shifted inputs."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rlkernel.evaluator.judging.inputs.stress import STRESS, Side, changed, changes, half_size, side, stressed
from rlkernel.evaluator.messages.judgement import Stress


def test_stress() -> None:
    positive, both, whole = torch.tensor([0.5, 1.0]), torch.tensor([-1.0, 2.0]), torch.tensor([3])
    # Centred, the positive ones lose their mean of 3/4, and get back 1/128 of 1/8, half of what they are about it; 8 / 1024.
    assert [x.tolist() for x in stressed([positive, both, whole], Stress.SCALED)] == [[4.0, 8.0], [-8.0, 16.0], [3]]
    assert [x.tolist() for x in stressed([positive, both, whole], Stress.SHIFTED)] == [[-1.9921875, 2.0078125], [-8.0, 16.0], [3]]
    about_zero = torch.tensor([-1.5, 0.0, 2.5])  # its root mean square is 1.68: half of 2 is added, before the factor
    assert stressed([about_zero], Stress.SHIFTED)[0].tolist() == [-4.0, 0.0, 28.0]
    for value in (about_zero, positive):
        across = value.repeat(2, 1).t()
        assert stressed([across], Stress.SHIFTED)[0].stride() == across.stride()
    triangle = torch.tensor(
        [[0.5, 0.0], [0.5, 1.0]]
    )  # mean 0.5, and about it 0.35, half of which is 1/8; what is zero stays zero
    assert stressed([triangle], Stress.SHIFTED)[0].tolist() == [[0.0078125, 0.0], [0.0078125, 4.0078125]]
    assert stressed([positive], Stress.NONE)[0] is positive


@pytest.mark.parametrize("stress", [Stress.SCALED, Stress.SHIFTED])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_inputs_of_zeros_get_other_values_and_those_in_structures_are_scaled(stress: Stress, dtype: torch.dtype) -> None:
    zeros, whole = torch.zeros(3, 4, dtype=dtype), torch.zeros(4, dtype=torch.int64)
    both = torch.tensor([-1.0, 2.0])
    first, (second, third), found = stressed([zeros, [both, 2.0], {"whole": whole, "zeros": zeros.t()}], stress)
    assert (first.dtype, first.shape, found["zeros"].stride()) == (dtype, (3, 4), (1, 4))
    assert float(first.abs().min()) > 0.0 and float(first.abs().max()) <= 0.5 and first.unique().numel() == 12
    assert (second.tolist(), third, found["whole"].tolist()) == ([-8.0, 16.0], 2.0, [0, 0, 0, 0])
    assert STRESS == 8.0


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (torch.tensor([-0.2, 0.9]), False),  # farther to one side
        (torch.tensor([-0.3, 0.9]), True),
        (torch.tensor([0.2, 0.9]), False),
        (torch.tensor([-1.0, 1.0]), False),  # whole numbers
        (torch.tensor([0.5, -torch.inf]), False),  # a mask
        (torch.tensor([0.5, -torch.inf, torch.inf]), False),
        (torch.tensor([0.5, -0.5, torch.nan]), False),
        (torch.tensor([-1, 1]), False),
        (0.5, False),
    ],
)
def test_what_lies_about_zero(value: object, answer: bool) -> None:
    assert (side(value) is Side.TWO) is answer


@settings(deadline=None)
@given(
    st.floats(1e-3, 1e3), st.integers(2, 300), st.sampled_from([torch.float32, torch.bfloat16, torch.float16]), st.integers(0, 99)
)
def test_inputs_about_zero_are_moved_by_about_half_their_size(size: float, count: int, dtype: torch.dtype, seed: int) -> None:
    """By a power of two, so that two draws of the same inputs are moved alike, bit by bit."""
    x = (torch.randn(count, generator=torch.Generator().manual_seed(seed)) * size).to(dtype)
    by = half_size(x)
    rms = float(x.double().square().mean().sqrt())
    assert math.frexp(by)[0] == 0.5 and 0.35 * rms < by < 0.71 * rms


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (torch.tensor([0.2, 0.9]), True),
        (torch.tensor([-0.2, 0.9]), False),
        (torch.tensor([0.0, 1.0]), False),  # a mask
        (torch.tensor([0.5]), False),
        (torch.tensor([1, 2]), False),
        (0.5, False),
    ],
)
def test_what_is_never_negative(value: object, answer: bool) -> None:
    assert (side(value) is Side.ONE) is answer


def test_zeros_that_share_memory_get_other_values_that_do() -> None:
    """A candidate is given inputs as they lie: the rows of an expanded tensor are one row."""
    (rows,) = stressed([torch.zeros(6).expand(4, 6)], Stress.SCALED)
    assert rows.stride() == (0, 1) and torch.equal(rows[0], rows[3]) and rows[0].unique().numel() == 6
    (channels,) = stressed([torch.zeros(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)], Stress.SCALED)
    assert channels.is_contiguous(memory_format=torch.channels_last) and channels.unique().numel() == 96


def test_what_was_seen_in_one_draw_is_done_to_every_draw_without_a_look_at_its_values() -> None:
    """A meta tensor has no values: whoever looks at them raises."""
    draw = [torch.rand(64), [torch.randn(64), torch.zeros(64)], torch.arange(64), 2.0]
    for stress in (Stress.SCALED, Stress.SHIFTED):
        found = changes(draw, stress)
        again = changed([torch.rand(64, device="meta"), [torch.randn(64, device="meta")] * 2, torch.arange(64), 2.0], found)
        assert [tuple(t.shape) for t in (again[0], *again[1])] == [(64,)] * 3 and again[3] == 2.0
        assert all(torch.equal(a, b) for a, b in zip(changed(draw, found)[1], stressed(draw, stress)[1], strict=True))


def test_numbers_that_stand_in_order_stay_in_order_also_where_one_is_zero() -> None:
    """A merge of two sorted halves is right for what is sorted alone."""
    rising = torch.linspace(-1.0, 1.0, 33)  # the one in the middle is zero
    assert int((rising == 0).sum()) == 1
    positive = torch.cat([torch.zeros(1), torch.linspace(0.1, 1.0, 32)])
    for drawn in (rising, rising.flip(0), rising.repeat(3, 1), positive):
        steps = stressed([drawn], Stress.SHIFTED)[0].diff(dim=-1)
        assert bool((steps > 0).all() | (steps < 0).all())
    shuffled = rising[torch.tensor([*range(1, 33), 0])]
    assert stressed([shuffled], Stress.SHIFTED)[0][15] == 0  # a quarter is added to the others


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_shares_are_scaled_and_nothing_else(dtype: torch.dtype) -> None:
    """Where they are added up until they reach a number, none may be negative."""
    torch.manual_seed(0)
    shares, others = torch.randn(64, 96).softmax(-1).to(dtype), torch.rand(64, 96).to(dtype)
    found = [stressed([shares, others], stress)[0] for stress in (Stress.SCALED, Stress.SHIFTED, Stress.EXTREME)]
    assert all(torch.equal(one, shares * STRESS) for one in found)
    assert float(stressed([shares, others], Stress.SHIFTED)[1].min()) < 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_inputs_of_every_precision_are_shifted_by_half_of_their_size(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(64, 64, dtype=torch.float64).to(dtype)  # a root mean square of 1, and no zeros, which stay
    assert half_size(x) == 0.5
    assert torch.equal(stressed([x], Stress.SHIFTED)[0], (x + 0.5) * STRESS)
