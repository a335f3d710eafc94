"""Directions from one point to another: where both are one point, the limit of the distance keeps zeros from being divided by zero."""

import torch
import torch.nn as nn

ROWS, DIM = 4096, 256


class Model(nn.Module):
    def forward(self, x, y):
        way = x - y
        return way / way.norm(dim=1, keepdim=True).clamp(min=1e-6)


def get_inputs():
    return [torch.randn(ROWS, DIM), torch.randn(ROWS, DIM)]


def get_init_inputs():
    return []
