"""What lengths leave of the inputs."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import profile_of
from rlkernel.evaluator.judging import preparing
from rlkernel.evaluator.judging.inputs.told import told_shares
from rlkernel.reference import load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, lengths):
        keep = torch.arange(x.shape[1]) < lengths[:, None]
        return {result}

def get_inputs():
    return [torch.randn(8, 32, 4), torch.randint(1, 33, (8,))]

def get_init_inputs():
    return []
"""


def shares(result: str) -> tuple[float, ...] | None:
    return told_shares(load_reference(SOURCE.format(result=result), small=False, name="problem"))


def test_of_what_a_length_masks_the_drawing_counts_that_leaves_least() -> None:
    found = shares("(x * keep[..., None]).sum(1)")
    assert found is not None
    assert 0.1 < found[0] < 0.5 and found[1] == 1.0


@pytest.mark.parametrize("result", ["x.sum(1)", "x.argmax(1)", "x.mul_(keep[..., None])"])
def test_nothing_is_claimed_where_all_matters_or_gradients_say_nothing(result: str) -> None:
    assert shares(result) is None


def test_no_gradients_are_asked_for_where_inputs_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody has made a problem small, as for a GPU, these would be eight forwards and backwards at its full shape."""
    source = SOURCE.format(result="(x * keep[..., None]).sum(1)")

    def told() -> object:
        return preparing.prepare(source, "problem", profile_of("h200"), Precision.STRICT).told

    assert told() is not None
    monkeypatch.setattr(preparing, "MOST_LOOKED_AT", 8 * 32 * 4)  # without the lengths
    assert told() is None


GATHERED = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, table, w, places):
        return table[places] @ w

def get_inputs():
    return [torch.randn(256, 16), torch.randn(16, 16), torch.randint(0, 256, (64,))]

def get_init_inputs():
    return []
"""


def test_rows_that_nobody_gathers_leave_products_as_they_are() -> None:
    """A loop that ends at any whole number would else do without the products of a reference that has no lengths."""
    found = preparing.prepare(GATHERED, "problem", profile_of("h200"), Precision.STRICT)
    assert found.told is not None and found.told.floor_us < found.costs.floor_us
    assert found.told.least_share == found.costs.least_share > 0
