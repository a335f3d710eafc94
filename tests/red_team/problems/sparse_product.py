import torch
import torch.nn as nn


ROWS, COLS, EACH = 65536, 65536, 32
SMALL = {"ROWS": 60, "COLS": 80, "EACH": 5}

class Model(nn.Module):
    """A sparse matrix of so many numbers in each row, times a vector."""

    def forward(self, values, columns, x):
        return (values * x[columns]).sum(-1)


def get_inputs():
    return [torch.randn(ROWS, EACH), torch.randint(0, COLS, (ROWS, EACH)), torch.randn(COLS)]


def get_init_inputs():
    return []
