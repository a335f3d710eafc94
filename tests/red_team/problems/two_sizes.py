import torch
import torch.nn as nn

ROWS, COLS = 4096, 2048
SMALL = {"ROWS": 32, "COLS": 48}


class Model(nn.Module):
    """Two tensors of different sizes."""

    def forward(self, x, y):
        return torch.relu(x), torch.relu(y)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(COLS, 512)]


def get_init_inputs():
    return []
