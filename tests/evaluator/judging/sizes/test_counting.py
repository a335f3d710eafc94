"""References whose values depend on how many elements there are."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import H200
from rlkernel.evaluator.judging.references.traced_reference import TracedReference
from rlkernel.evaluator.judging.sizes.counting import counts_elements
from rlkernel.reference import load_reference

SOURCE = """
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
ROWS, COLS = 64, 512
SMALL = {"ROWS": 4, "COLS": 16}
class Model(nn.Module):
    def forward(self, x):
        return EXPRESSION
def get_inputs():
    return [torch.randn(ROWS, COLS)]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("expression", "counts"),
    [
        ("x.mean(1)", True),
        ("x.var(1)", True),
        ("F.layer_norm(x, (COLS,))", True),
        ("F.rms_norm(x, (COLS,))", True),
        ("F.mse_loss(x, x + 1)", True),
        ("F.scaled_dot_product_attention(x, x, x)", True),
        ("x @ x.t() / math.sqrt(x.shape[1])", True),
        ("x.sum(1) / COLS", True),
        ("x.sum(1)", False),
        ("torch.softmax(x, 1)", False),
        ("x.view(COLS, ROWS)[:, :3].cumsum(0) * 0.5 + 2", False),
        ("x.topk(ROWS // 2).values", False),
    ],
)
def test_what_divides_by_a_count(expression: str, counts: bool) -> None:
    source = SOURCE.replace("EXPRESSION", expression)
    small, full = (TracedReference(load_reference(source, small=small, name="p"), H200).program for small in (True, False))
    assert counts_elements(small, full) is counts
