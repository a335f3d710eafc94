"""SwiGLU network."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 2048
DIM = 1024
HIDDEN = 2048
SMALL = {"ROWS": 14, "DIM": 20, "HIDDEN": 36}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(DIM, HIDDEN, bias=False)
        self.up = nn.Linear(DIM, HIDDEN, bias=False)
        self.down = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))

def get_inputs():
    return [torch.randn(ROWS, DIM) * 4.0]

def get_init_inputs():
    return []
