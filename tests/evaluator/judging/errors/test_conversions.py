"""Conversions to integers that do not hold a number are seen, and rounds that lead to them are not drawn."""

from __future__ import annotations

import pytest
import torch

from rlkernel.evaluator.judging.errors.conversions import Conversions
from rlkernel.reference import load_reference
from rlkernel.types import Precision
from tests.evaluator.judging.test_drawing import drawn_rounds


@pytest.mark.parametrize(
    ("value", "dtype", "overflow"),
    [
        (127.9, torch.int8, False),  # 127
        (-128.9, torch.int8, False),
        (128.0, torch.int8, True),
        (-1.0, torch.uint8, True),
        (-0.9, torch.uint8, False),
        (float("nan"), torch.int64, True),
        (1e300, torch.bool, False),
        (1e300, torch.float32, False),
    ],
)
def test_what_an_integer_does_not_hold_is_seen(value: float, dtype: torch.dtype, overflow: bool) -> None:
    with Conversions() as seen:
        torch.tensor([0.0, value], dtype=torch.float64).to(dtype)
    assert seen.overflow is overflow


SOURCE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return (x * {factor}).to(torch.int8)

def get_inputs():
    return [torch.rand(64)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(("factor", "stressed"), [(10, True), (100, False)])
def test_inputs_are_scaled_where_integers_hold_the_results(factor: int, stressed: bool) -> None:
    """Inputs up to 1 become up to 8: 8 x 10 is within 127, 8 x 100 is not."""
    reference = load_reference(SOURCE.replace("{factor}", str(factor)), small=False)
    rounds = drawn_rounds(reference, Precision.PYTORCH, "key", other=False)
    assert (float(rounds[2].inputs[0].abs().max()) > 1.0) is stressed
