"""A problem that is made ready: a reference that fails is named."""

from __future__ import annotations

import pytest

from rlkernel.errors import BrokenReference
from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.types import Precision
from tests.evaluator.judging.test_oracle import ATTRIBUTE


def test_a_reference_that_fails_without_a_word_is_named() -> None:
    source = ATTRIBUTE.replace("def forward(self, x):", "def forward(self, x):\n        assert False")
    assert source != ATTRIBUTE
    with pytest.raises(BrokenReference, match=r"^mine/x: .*AssertionError"):
        prepare(source, "mine/x", H200, Precision.PYTORCH)
