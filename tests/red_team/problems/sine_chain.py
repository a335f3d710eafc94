"""Thirty sines and cosines in a row, of which one kernel computes all: its time is that of its arithmetic, not of its bytes."""

import torch
import torch.nn as nn

SIZE = 1 << 24
SMALL = {"SIZE": 16384}


class Model(nn.Module):
    def forward(self, x):
        for _ in range(30):
            x = torch.sin(x) + torch.cos(x)
        return x


def get_inputs():
    return [torch.randn(SIZE)]


def get_init_inputs():
    return []
