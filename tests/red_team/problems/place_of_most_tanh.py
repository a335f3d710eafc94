"""Where the largest of each row is, after a squashing function and a gain."""

import torch
import torch.nn as nn

ROWS, COLS = 4096, 2000
SMALL = {"ROWS": 12, "COLS": 100}


class Model(nn.Module):
    def __init__(self, cols):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return torch.argmax(torch.tanh(x) * self.scale, 1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return [COLS]
