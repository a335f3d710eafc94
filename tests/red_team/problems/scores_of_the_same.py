"""Gains of two tables, named by two inputs that hold the same whole numbers, in rows that are all the same."""

import torch
import torch.nn as nn

BATCH = 64
LENGTH = 4096
KINDS = 1000


class Model(nn.Module):
    def __init__(self, kinds):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(kinds))
        self.shift = nn.Parameter(torch.randn(kinds))

    def forward(self, x, names, others):
        return x * self.gain[names] + self.shift[others]


def get_inputs():
    names = torch.randint(0, KINDS, (1, LENGTH)).repeat(BATCH, 1)
    return [torch.randn(BATCH, LENGTH), names, names.clone()]


def get_init_inputs():
    return [KINDS]
