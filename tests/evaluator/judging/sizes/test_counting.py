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
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, COLS)  # whose bounds are made of its rows
        self.scale = SCALE
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
        ("torch.lerp(x, x * 2, 1 / COLS)", True),
        ("torch.addmv(x[:, 0], x, x[0], alpha=1 / COLS)", True),
        ("torch.addmv(x[:, 0], x, x[0], alpha=0.5)", False),
        ("x.sum(1) * torch.tensor(1 / COLS)", True),
        ("x.sum(1) * torch.tensor(0.5)", False),
        ("x.sum(1) / torch.ones_like(x).sum(1)", True),
        ("F.avg_pool1d(x[:, None], COLS)", True),
        ("F.avg_pool1d(x[:, None], 4)", False),
        ("torch.fft.ifft(x).real", True),
        ("x.sum(0) + torch.arange(COLS)", True),
        ("F.embedding_bag(torch.arange(ROWS)[None], x, mode='mean')", True),
        ("torch.zeros(ROWS, 1).scatter_reduce(1, x.argsort(1) * 0, x, 'mean')", True),
    ],
)
def test_what_divides_by_a_count(expression: str, counts: bool) -> None:
    assert counted(expression) is counts


@pytest.mark.parametrize(
    ("scale", "counts"),
    [
        ("torch.tensor(1 / COLS)", True),
        ("torch.full((1,), 1 / COLS)", True),
        ("torch.full((1,), 0.5)", False),
        ("nn.Parameter(torch.randn(COLS))", False),
    ],
)
def test_what_init_makes_of_a_count(scale: str, counts: bool) -> None:
    assert counted("self.linear(x[:, :3]).sum(1) * self.scale.sum()", scale) is counts


def counted(expression: str, scale: str = "1") -> bool:
    source = SOURCE.replace("EXPRESSION", expression).replace("SCALE", scale)
    small, full = (TracedReference(load_reference(source, small=small, name="p"), H200).program for small in (True, False))
    return counts_elements(small, full)
