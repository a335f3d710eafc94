"""Weights that are far larger than the others: which have them, how many, and what 8 bits make of them."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from rlkernel.evaluator.judging.drawing import draw_rounds
from rlkernel.evaluator.judging.references.outliers import NOTE, SHARE, WithOutliers, weights
from rlkernel.evaluator.program.folding import OUTLIER
from rlkernel.reference import load_reference
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(512, 256, dtype=torch.{dtype})
        self.norm = nn.LayerNorm(256, dtype=torch.{dtype})
        self.register_buffer("table", torch.randn(512, 2))

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(8, 512).to(torch.{dtype})]

def get_init_inputs():
    return []
"""
PLAIN = "self.norm(self.fc(x))"


def source(dtype: str = "bfloat16", forward: str = PLAIN) -> str:
    return SOURCE.replace("{dtype}", dtype).replace("{forward}", forward)


def notes(text: str) -> list[str]:
    reference = load_reference(text, small=False, name="drawn")
    rounds = draw_rounds(reference, Precision.PYTORCH, "key", other=False)
    return [one.expected.note for module in rounds for one in module]


def test_one_weight_in_so_many_is_larger_and_nothing_else_changes() -> None:
    reference = load_reference(source(), small=False, name="linear")
    usual, other = reference.model(5).state_dict(), WithOutliers(reference).model(5).state_dict()
    assert [name for name in usual if not torch.equal(usual[name], other[name])] == ["fc.weight"]
    changed = usual["fc.weight"] != other["fc.weight"]
    assert float(changed.float().mean()) == pytest.approx(1 / SHARE, rel=0.2)
    assert torch.equal(other["fc.weight"][changed], OUTLIER * usual["fc.weight"][changed])


def test_what_is_constant_or_meant_or_no_matrix_has_none() -> None:
    model = nn.ModuleDict({"a": nn.Linear(16, 16), "b": nn.Linear(16, 16), "c": nn.Linear(2, 2)})
    nn.init.ones_(model["b"].weight)  # type: ignore[arg-type]
    assert weights(model, ()) == ["a.weight"]
    assert weights(model, ("a.*",)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (source(), True),
        (source("float32"), False),  # float32's bounds tell 8 bits anyhow
        (source(forward="self.norm(x[:, :256])"), True),  # of weights that forward does not read nobody sees anything
        (source("float16", "self.fc(6000 * x)"), False),  # infinite
    ],
)
def test_where_there_is_such_a_round(text: str, found: bool) -> None:
    assert (f" ({NOTE})" in notes(text)) == found
