"""Two-dimensional convolution."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 16
CHANNELS = 64
SIZE = 64
SMALL = {"BATCH": 2, "CHANNELS": 5, "SIZE": 9}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CHANNELS, CHANNELS, 3, 3))

    def forward(self, x):
        return F.conv2d(x, self.weight, padding=1)

def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]

def get_init_inputs():
    return []
