"""Rows that are made shorter where they are longer than a thousand."""

import torch
import torch.nn as nn

ROWS, COLS = 4096, 4096


class Model(nn.Module):
    def forward(self, x):
        return x / (x.norm(dim=1, keepdim=True) / 1000.0).clamp(min=1.0)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
