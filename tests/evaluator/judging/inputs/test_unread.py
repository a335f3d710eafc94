"""Inputs of zeros that a reference does not read stay zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from rlkernel.evaluator.judging.inputs.stress import stressed
from rlkernel.evaluator.judging.inputs.unread import unread_zeros
from rlkernel.evaluator.messages.judgement import Places, Stress


class Forward(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


def total_into(self: Forward, x: torch.Tensor, out: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    out[0] = x.sum()
    out[1:] = other[1:]
    return out


def half_into(self: Forward, x: torch.Tensor, out: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    out[:2] = x[:2]
    return out


def product(self: Forward, x: torch.Tensor, out: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return x + out * other


def kept(self: Forward, x: torch.Tensor, out: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    self.get_buffer("seen").copy_(out)
    return x + 1.0


def scratch(self: Forward, x: torch.Tensor, out: torch.Tensor, other: torch.Tensor) -> None:
    out.copy_(x)
    other.copy_(out)


def noise(self: Forward, x: torch.Tensor, out: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return torch.rand(4, generator=torch.Generator().manual_seed(torch.Generator().seed() % 2**31))


def refuses(self: Forward, x: torch.Tensor, out: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    assert not out.any()
    return x


@pytest.mark.parametrize(
    ("forward", "unread"),
    [
        (total_into, {1}),
        (half_into, {2}),  # what is left of the second argument is returned
        (product, set()),  # each matters where the other is not zero
        (kept, {2}),
        (scratch, {1, 2}),
        (noise, set()),
        (refuses, set()),
    ],
)
def test_zeros_stay_where_the_reference_does_not_read_them(forward: Callable[..., Any], unread: set[int]) -> None:
    def draw() -> list[Any]:
        return [torch.arange(1.0, 5.0), torch.zeros(4), torch.zeros(4)]

    assert unread_zeros(lambda: Forward(forward), draw, 0, Stress.SCALED) == unread
    assert unread_zeros(lambda: Forward(forward), draw, 0, Stress.NONE) == set()
    moved = stressed(draw(), Stress.SCALED, Places(kept=tuple(unread)))
    assert [bool(moved[place].any()) for place in (1, 2)] == [1 not in unread, 2 not in unread]
    assert moved[0].tolist() == [8.0, 16.0, 24.0, 32.0]
