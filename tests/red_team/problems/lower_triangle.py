"""A triangle of a large matrix: half of what the reference is given is never read."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 8192, 8192
SMALL = {"ROWS": 48, "COLUMNS": 48}


class Model(nn.Module):
    def forward(self, x):
        return torch.tril(x) * 3.0


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
