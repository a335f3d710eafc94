import torch
import torch.nn as nn


ROWS, COLS = 4096, 2048
SMALL = {"ROWS": 10, "COLS": 150}

class Model(nn.Module):
    """The running maximum of each row, and how far each element lies below it."""

    def forward(self, x):
        top = torch.cummax(x, 1).values
        return top, top - x


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
