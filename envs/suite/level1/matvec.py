"""Matrix times a weight vector."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 8192
COLS = 8192
SMALL = {"ROWS": 24, "COLS": 72}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        return torch.mv(x, self.weight)

def get_inputs():
    return [torch.randn(ROWS, COLS)]

def get_init_inputs():
    return []
