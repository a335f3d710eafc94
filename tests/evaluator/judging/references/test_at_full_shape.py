"""A reference at its full shape is traced once for looks at several sizes, and anew where anything else of it differs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlkernel.evaluator.devices import A100, H200, DeviceProfile
from rlkernel.evaluator.judging.preparing import Prepared, prepare
from rlkernel.evaluator.judging.references import at_full_shape
from rlkernel.evaluator.judging.references.traced_reference import TracedReference
from rlkernel.reference import Reference
from rlkernel.types import Precision

STEPS = """
import torch

STEPS, COLS = 64, 4096
SMALL = {"STEPS": 4, "COLS": 32}

class Model(torch.nn.Module):
    def forward(self, x):
        for step in range(x.shape[0]):
            x = x * 0.5
        return x

def get_inputs():
    return [torch.randn(STEPS, COLS)]
"""


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the references that were traced at full shape."""
    names: list[str] = []

    def noting(reference: Reference, profile: DeviceProfile, held: tuple[str, ...]) -> TracedReference:
        names.append(reference.name)
        return TracedReference(reference, profile, held)

    monkeypatch.setattr(at_full_shape, "TracedReference", noting)
    monkeypatch.setattr(at_full_shape, "_kept", [])
    return names


def prepared(source: str, name: str = "steps", precision: Precision = Precision.PYTORCH) -> Prepared:
    return prepare(source, name, H200, precision)


def test_looks_at_other_sizes_share_what_was_traced_at_full_shape(traced: list[str]) -> None:
    first, longer = prepared(STEPS), prepared(STEPS.replace('"STEPS": 4', '"STEPS": 16'))
    assert traced == ["steps"]
    assert (first.costs, first.program, first.variants[1].inputs) == (longer.costs, longer.program, longer.variants[1].inputs)
    shapes = [tuple(tensor.shape) for problem in (first, longer) for tensor in problem.small.inputs(0)]
    assert shapes == [(4, 32), (16, 32)]


@pytest.mark.parametrize(
    "other",
    [
        STEPS.replace("STEPS, COLS = 64", "STEPS, COLS = 32"),
        STEPS.replace("x * 0.5", "x * 0.25"),
        STEPS.replace("range(x.shape[0])", "range(min(x.shape[0], 2 * SMALL['STEPS']))").replace('"STEPS": 4', '"STEPS": 8'),
    ],
)
def test_a_text_that_differs_is_traced_anew(traced: list[str], other: str) -> None:
    first, second = prepared(STEPS), prepared(other)
    assert traced == ["steps", "steps"]
    assert first.program != second.program


def test_costs_follow_the_card_and_the_precision(traced: list[str]) -> None:
    product = STEPS.replace("x * 0.5", "x + x @ (x.t() @ x)")
    exact, rounded = prepared(product, precision=Precision.STRICT), prepared(product, precision=Precision.TF32)
    assert traced == ["steps"]
    assert exact.costs.floor_us > rounded.costs.floor_us
    other = prepare(product, "steps", replace(A100, name="mine"), Precision.TF32)
    assert traced == ["steps", "steps"]
    assert other.costs.us > rounded.costs.us
