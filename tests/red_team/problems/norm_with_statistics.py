import torch
import torch.nn as nn


ROWS, COLS = 8192, 4096
SMALL = {"ROWS": 24, "COLS": 320}

class Model(nn.Module):
    """A layer norm that returns its means and inverse deviations, too."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(COLS))
        self.bias = nn.Parameter(torch.zeros(COLS))

    def forward(self, x):
        mean = x.mean(-1)
        rstd = torch.rsqrt(x.var(-1, unbiased=False) + 1e-5)
        return (x - mean[:, None]) * rstd[:, None] * self.weight + self.bias, mean, rstd


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
