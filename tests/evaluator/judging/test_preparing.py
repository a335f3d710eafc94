"""A problem that is made ready: a reference that fails is named."""

from __future__ import annotations

import pytest

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging import preparing
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.types import Precision
from tests.evaluator.judging.test_oracle import ATTRIBUTE


def test_a_reference_that_fails_without_a_word_is_named() -> None:
    source = ATTRIBUTE.replace("def forward(self, x):", "def forward(self, x):\n        assert False")
    assert source != ATTRIBUTE
    with pytest.raises(BrokenReference, match=r"^mine/x: .*AssertionError"):
        prepare(source, "mine/x", H200, Precision.PYTORCH)


MASKED = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, lengths):
        keep = torch.arange(x.shape[0])[:, None] < lengths
        return torch.tril(x @ x).clamp(max=50) * keep
def get_inputs():
    return [torch.randn(64, 64), torch.randint(1, 65, (64,))]
def get_init_inputs():
    return []
"""


def test_where_times_are_measured_nothing_is_looked_for_that_modelled_ones_need(monkeypatch: pytest.MonkeyPatch) -> None:
    modelled = prepare(MASKED, "mine/x", H200, Precision.PYTORCH)
    assert modelled.known and modelled.told

    def refused(*given: object) -> None:
        raise AssertionError

    for name in ("_matters", "_plants", "_told", "_asked_for"):
        monkeypatch.setattr(preparing, name, refused)
    measured = prepare(MASKED, "mine/x", H200, Precision.PYTORCH, modelled=False)
    assert (measured.variants, measured.program, measured.modal) == (modelled.variants, modelled.program, modelled.modal)
    assert measured.costs.measured_floor_us == modelled.costs.measured_floor_us
