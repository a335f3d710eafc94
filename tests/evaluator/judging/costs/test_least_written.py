"""What a reference writes of memory that was there before is all that a candidate's kernels have to write there."""

from __future__ import annotations

import pytest

from rlkernel.evaluator.devices import PROFILES
from rlkernel.evaluator.judging.preparing import prepare
from rlkernel.types import Precision

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(10, 4))

    def forward(self, cache, rows, at):
        {body}

def get_inputs():
    return [torch.zeros(10, 4), torch.randn(2, 4), torch.tensor([1, 3])]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ("return cache + 1", (160,)),
        ("cache[2:4] = rows; return cache", (32,)),
        ("cache.add_(1); return cache", (160,)),
        ("cache[2:4] = rows; cache[2:8] = 0; return cache", (128,)),
        ("cache[at] = rows; return cache", (32,)),  # two rows, and not the two numbers that say which
        ("cache[at] = 0; return cache", (32,)),  # two rows of 16 bytes, however few numbers are put there
        ("cache[at] = rows[0, 0]; return cache", (32,)),
        ("cache[:, at] = rows[0, :1]; return cache", (80,)),  # two columns of 10 elements
        ("cache.index_fill_(0, at, 1.0); return cache", (32,)),
        ("cache.scatter_(0, at[:, None], 1.0); return cache", (8,)),
        ("torch.index_add(cache, 0, at, rows, out=cache); return cache", (160,)),  # which makes all of it
        ("cache.view(-1)[at] = rows[:, 0]; return cache", (8,)),
        ("cache.index_add_(0, at, rows); return cache", (32,)),
        ("self.kept[:, 1:] = 2; return self.kept, rows * 2", (120, 32)),
        ("out = torch.empty_like(cache); out[2:4] = rows; return out", (160,)),
        ("return rows * 2, cache", (32, 0)),
    ],
)
def test_bytes_of_outputs(body: str, written: tuple[float, ...]) -> None:
    found = prepare(SOURCE.format(body=body), "p", PROFILES["h200"], Precision.PYTORCH)
    assert found.costs.written == written
