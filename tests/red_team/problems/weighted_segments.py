"""Rows of several segments, each with a weight of its own: the reference reads on the host where each segment begins and ends."""

import torch
import torch.nn as nn

SEGMENTS = 4
ROWS = 1024
COLUMNS = 512
SMALL = {"ROWS": 32, "COLUMNS": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(SEGMENTS, COLUMNS))

    def forward(self, x, offsets):
        out = torch.empty_like(x)
        for segment in range(SEGMENTS):
            start, end = int(offsets[segment].item()), int(offsets[segment + 1].item())
            if end > start:
                out[start:end] = torch.relu(x[start:end] * self.weight[segment])
        return out


def get_inputs():
    counts = torch.full((SEGMENTS,), ROWS // SEGMENTS, dtype=torch.int32)
    offsets = torch.zeros(SEGMENTS + 1, dtype=torch.int32)
    offsets[1:] = torch.cumsum(counts, dim=0)
    return [torch.randn(ROWS, COLUMNS), offsets]


def get_init_inputs():
    return []
