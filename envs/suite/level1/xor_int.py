"""Bitwise xor of 32-bit integers."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 4096
COLS = 8192
SMALL = {"ROWS": 12, "COLS": 104}

class Model(nn.Module):
    def forward(self, x, y):
        return torch.bitwise_xor(x, y)

def get_inputs():
    x = torch.randint(-1000000, 1000000, (ROWS, COLS), dtype=torch.int32)
    y = torch.randint(-1000000, 1000000, (ROWS, COLS), dtype=torch.int32)
    return [x, y]

def get_init_inputs():
    return []
