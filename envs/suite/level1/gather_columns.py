"""One value of every row picked by index."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 65536
COLS = 512
PICKS = 256
SMALL = {"ROWS": 12, "COLS": 40, "PICKS": 24}

class Model(nn.Module):
    def forward(self, x, index):
        return torch.gather(x, 1, index)

def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randint(0, COLS, (ROWS, PICKS))]

def get_init_inputs():
    return []
