import torch
import torch.nn as nn


ROWS, COLS = 4096, 8192
SMALL = {"ROWS": 8, "COLS": 64}

class Model(nn.Module):
    """Which elements are positive, 32 to a number."""

    def forward(self, x):
        bits = (x > 0).view(x.shape[0], -1, 32).long()
        return (bits << torch.arange(32, device=x.device)).sum(-1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
