"""A product of which every element is needed takes all of its arithmetic; what may hide a part of it takes less."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.least_work import LEAST, WHOLE
from rlkernel.evaluator.judging.oracle import prepare
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.b = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return {forward}

def get_inputs():
    return [torch.randn(8, 8)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("forward", "share"),
    [
        ("x @ self.b", WHOLE),
        ("torch.relu(self.fc(x)) * 2", WHOLE),
        ("torch.softmax(x.t() @ self.b.t(), dim=-1)", WHOLE),
        ("torch.bmm(x[None], self.b.unsqueeze(0))", WHOLE),
        ("torch.relu(x @ self.b) @ self.fc.weight", WHOLE),
        ("torch.softmax(x @ self.b * 0.5, dim=-1) @ self.fc.weight + x", WHOLE),
        ("torch.tanh(self.fc(x)) @ self.b + self.fc(x)", LEAST),
        ("x @ self.b + x @ self.fc.weight", LEAST),
        ("torch.relu(self.fc(x)) @ torch.relu(self.fc(x)).t()", LEAST),
        ("torch.relu(x) @ x", LEAST),
        ("self.fc(x) @ self.b", LEAST),
        ("torch.tril(x @ self.b)", LEAST),
        ("torch.tril(x) @ self.b", LEAST),
        ("(x @ self.b).sum(1)", LEAST),
        ("(x @ self.b)[:, 0]", LEAST),
        ("x @ x.t()", LEAST),
        ("x @ self.b @ self.b", LEAST),
        ("(x @ self.b).masked_fill(x > 0, 0.0)", LEAST),
        ("torch.where(x > 0, x @ self.b, 0.0)", LEAST),
    ],
)
def test_the_share_of_a_product_that_is_needed(forward: str, share: float) -> None:
    source = SOURCE.replace("{forward}", forward)
    assert prepare(source, "p", PROFILES["h200"], Precision.PYTORCH).costs.least_share == share
