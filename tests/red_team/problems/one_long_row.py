"""The root mean square of one row, whose last block of 1024 is not a whole one: 98 blocks, of which the last holds 672."""

import torch
import torch.nn as nn

COLS = 100000
SMALL = {"COLS": 700}


class Model(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean() + 1e-5)


def get_inputs():
    return [torch.randn(COLS)]


def get_init_inputs():
    return []
