"""Sum of two tensors, the second times a Python scalar."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 4096
COLS = 8192
SMALL = {"ROWS": 18, "COLS": 88}

class Model(nn.Module):
    def forward(self, x, y, alpha):
        return x + alpha * y

def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), 0.75]

def get_init_inputs():
    return []
