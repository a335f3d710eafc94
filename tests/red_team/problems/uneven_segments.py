"""Sums over segments of several lengths, whose bounds are the same in each draw."""

import torch
import torch.nn as nn

BOUNDS = [0, 11, 16, 40, 64]


class Model(nn.Module):
    def forward(self, x, bounds):
        return torch.stack([x[bounds[i] : bounds[i + 1]].sum(0) for i in range(len(BOUNDS) - 1)])


def get_inputs():
    return [torch.randn(BOUNDS[-1], 4096), torch.tensor(BOUNDS)]


def get_init_inputs():
    return []
