"""Numbers above a half, weighted by which of some edges they lie between; an edge belongs to what is left of it."""

import torch
import torch.nn as nn

COUNT, EDGES = 1 << 22, 33
SMALL = {"COUNT": 3000}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("edges", torch.linspace(-2, 2, EDGES))
        self.weight = nn.Parameter(torch.randn(EDGES + 1))

    def forward(self, x, y):
        return self.weight[torch.bucketize(x, self.edges)] + torch.where(y >= 0.5, y, 0.0)


def get_inputs():
    return [torch.randn(COUNT), torch.randn(COUNT)]


def get_init_inputs():
    return []
