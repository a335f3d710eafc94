import torch
import torch.nn as nn

ROWS = 8192
COLS = 1024
SMALL = {"ROWS": 24, "COLS": 40}

class Model(nn.Module):
    """Centres columns, and keeps a running mean of them."""
    def __init__(self, cols):
        super().__init__()
        self.register_buffer("running", torch.zeros(cols))

    def forward(self, x):
        mean = x.mean(0)
        self.running.mul_(0.9).add_(mean, alpha=0.1)
        return torch.relu(x - mean)

def get_inputs():
    return [torch.randn(ROWS, COLS) + 1.0]

def get_init_inputs():
    return [COLS]
