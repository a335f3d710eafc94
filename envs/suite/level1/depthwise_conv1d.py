"""Depthwise causal convolution."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 32
CHANNELS = 256
SIZE = 4096
SMALL = {"BATCH": 2, "CHANNELS": 10, "SIZE": 36}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CHANNELS, 1, 4))

    def forward(self, x):
        x = F.pad(x, (3, 0))
        return F.conv1d(x, self.weight, groups=CHANNELS)

def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE)]

def get_init_inputs():
    return []
