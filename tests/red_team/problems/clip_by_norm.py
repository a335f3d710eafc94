"""A limit that is reached by small inputs alone: normal numbers are always clipped."""

import torch
import torch.nn as nn

ROWS, COLS = 4096, 4096
SMALL = {"ROWS": 24, "COLS": 200}


class Model(nn.Module):
    def forward(self, x):
        return x * torch.clamp(10.0 / (x.norm() + 1e-6), max=1.0)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
