"""Group normalisation with weight and bias."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 64
CHANNELS = 128
SIZE = 4096
SMALL = {"BATCH": 2, "CHANNELS": 12, "SIZE": 20}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CHANNELS))
        self.bias = nn.Parameter(torch.randn(CHANNELS))

    def forward(self, x):
        return F.group_norm(x, 4, self.weight, self.bias)

def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE)]

def get_init_inputs():
    return []
