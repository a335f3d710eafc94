"""Residual sum, root mean square normalisation."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 8192
COLS = 4096
SMALL = {"ROWS": 14, "COLS": 88}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))

    def forward(self, x, y):
        x = x + y
        scale = torch.rsqrt(x.pow(2).mean(dim=1, keepdim=True) + 1e-6)
        return x * scale * self.weight

def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]

def get_init_inputs():
    return []
