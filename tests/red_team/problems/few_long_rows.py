"""So few rows that a launch takes longer than what they read: time says nothing of what is left out."""

import torch
import torch.nn as nn

ROWS, COLS = 128, 4096
SMALL = {"ROWS": 24, "COLS": 96}


class Model(nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, dim=1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
