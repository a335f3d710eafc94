"""The exponential of a number that is at least another, else the other one turned."""

import torch
import torch.nn as nn

ROWS, COLS = 8192, 4096
SMALL = {"ROWS": 12, "COLS": 96}


class Model(nn.Module):
    def forward(self, x, y):
        return torch.where(x >= y, x.exp(), -y)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
