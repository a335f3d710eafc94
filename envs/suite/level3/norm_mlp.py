"""Layer normalisation, two-layer GELU network, residual sum."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 2048
DIM = 1024
HIDDEN = 2048
SMALL = {"ROWS": 12, "DIM": 24, "HIDDEN": 40}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(DIM))
        self.bias = nn.Parameter(torch.randn(DIM))
        self.up = nn.Linear(DIM, HIDDEN)
        self.down = nn.Linear(HIDDEN, DIM)

    def forward(self, x):
        y = F.layer_norm(x, (DIM,), self.weight, self.bias)
        y = F.gelu(self.up(y))
        return x + self.down(y)

def get_inputs():
    return [torch.randn(ROWS, DIM)]

def get_init_inputs():
    return []
