"""What a reference needs to the last element, and what it may leave alone in part."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(8, 8))
        self.register_buffer("keep", torch.ones(8, 8).tril())

    def forward(self, x, y):
        {before}
        return {forward}

def get_inputs():
    return [torch.randn(8, 8), {y}]

def get_init_inputs():
    return []
"""
ALL, WORDS = 8 * 8 * 4.0, 8 * 8 * 8.0


@pytest.mark.parametrize(
    ("forward", "found"),
    [
        ("torch.relu(x) + y", (ALL, ALL, 0)),
        ("(x * self.w).sum(0)", (ALL, 0, ALL)),
        ("F.layer_norm(x, (8,)).mean() + y.amax()", (ALL, ALL, 0)),
        ("x @ self.w + F.linear(y, self.w)", (ALL, ALL, ALL)),
        ("torch.softmax(x @ y.t() / 4, -1) @ self.w", (ALL, ALL, ALL)),
        ("x.t().contiguous().view(4, 16) * 2, y.cumsum(0)", (ALL, ALL, 0)),
        ("x[:, :4] * torch.sigmoid(x[:, 4:])", (ALL, 0, 0)),  # both halves
        ("x[:, :4].exp()", (0, 0, 0)),
        ("torch.relu(x)[:, -1] + y[0]", (0, 0, 0)),  # of the result a part is taken
        ("torch.tril(x) + y", (0, ALL, 0)),
        ("x * torch.ones(8, 8).tril() + y", (0, ALL, 0)),
        ("x * self.keep + y", (0, ALL, 0)),
        ("torch.softmax(x.masked_fill(torch.ones(8, 8).tril() == 0, -1e9), -1) @ y", (0, ALL, 0)),
        ("F.max_pool1d(x, 1, stride=2), y.argmax()", (0, ALL, 0)),
        ("F.conv1d(x[None], self.w[:, :, None]), F.conv1d(y[None], self.w[:, :, None], stride=2)", (ALL, 0, ALL)),
        ("F.adaptive_avg_pool2d(x[None], (3, 5)), F.avg_pool2d(y[None], 3, 2, ceil_mode=True)", (ALL, ALL, 0)),
        ("F.max_pool2d(x[None], 2), F.max_pool2d(y[None], 3)", (ALL, 0, 0)),  # of whose windows two rows are left
        ("F.conv1d(x[None], self.w[:, :, None].expand(8, 8, 3), stride=2, padding=1)", (ALL, 0, ALL)),
        ("F.conv_transpose2d(x[None, None], y[None, None, :2, :2], stride=2)", (ALL, 0, 0)),
        ("F.conv2d(x[None, None], y[None, None, ::4, ::4], dilation=3, padding=1)", (ALL, 0, 0)),
        (
            "F.conv2d(x[None, None], y[None, None], dilation=9, padding=32), self.w[1:].detach()",
            (0, 0, 0),
        ),  # most taps meet padding alone
        ("F.hardswish(F.logsigmoid(x)) + F.prelu(y, self.w[0, :1]).repeat(1, 1), self.w[:2].detach()", (ALL, ALL, 0)),
        ("torch.cdist(x, self.w), torch.flip(y, (1,))", (ALL, ALL, ALL)),
        ("F.scaled_dot_product_attention(x[None], y[None], y[None])", (ALL, ALL, 0)),
    ],
)
def test_what_is_needed_whole(forward: str, found: tuple[float, float, float]) -> None:
    source = SOURCE.format(forward=forward, before="", y="torch.randn(8, 8)")
    reads = prepare(source, "test", PROFILES["h200"], Precision.TF32).costs.reads
    assert (*reads.inputs, reads.parameters["w"]) == found


@pytest.mark.parametrize(
    ("before", "forward", "found"),
    [
        ("x = x.clone()", "x.relu_() + y", (ALL, ALL)),
        ("z = torch.empty_like(x)", "z.copy_(x) + y", (0, ALL)),
        ("x[0] = y[0]", "x * 2", (0, 0)),
    ],
)
def test_what_is_written_in_place(before: str, forward: str, found: tuple[float, float]) -> None:
    source = SOURCE.format(forward=forward, before=before, y="torch.randn(8, 8)")
    assert prepare(source, "test", PROFILES["h200"], Precision.TF32).costs.reads.inputs == found


@pytest.mark.parametrize(
    ("y", "forward", "found"),
    [
        ("torch.randint(0, 8, (8, 8))", "x.gather(1, y)", (0, 0)),
        ("torch.randint(0, 8, (8, 8))", "x + y", (ALL, WORDS)),
        ("torch.randint(0, 8, (8,))", "F.cross_entropy(x, y)", (ALL, 0)),
        ("torch.randint(0, 8, (8,))", "F.cross_entropy(x, y, label_smoothing=0.1)", (ALL, 64)),  # which looks at each label
        ("torch.rand(8, 8) < 0.5", "x.masked_fill(y, 0.0)", (ALL, 64)),
        ("torch.randn(8, 8).tril()", "x @ y", ()),  # a part of which is always zero
    ],
)
def test_what_is_read_by_numbers_or_hidden_by_zeros(y: str, forward: str, found: tuple[float, ...]) -> None:
    source = SOURCE.format(forward=forward, before="", y=y)
    assert prepare(source, "test", PROFILES["h200"], Precision.TF32).costs.reads.inputs == found
