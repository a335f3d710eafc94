import torch
import torch.nn as nn


ROWS, COLS = 4096, 4096
SMALL = {"ROWS": 12, "COLS": 150}

class Model(nn.Module):
    """Turns the sign of every other block of 256 columns, and halves every other block of 512 rows."""

    def forward(self, x):
        rows, cols = x.shape
        sign = 1 - 2 * (torch.arange(cols, device=x.device) // 256 % 2)
        half = 1 - 0.5 * (torch.arange(rows, device=x.device) >> 9 & 1)
        return x * sign * half[:, None]


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
