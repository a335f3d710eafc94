"""Convolution, group normalisation, ReLU, residual sum."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 16
CHANNELS = 64
SIZE = 64
SMALL = {"BATCH": 2, "CHANNELS": 8, "SIZE": 7}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1)
        self.weight = nn.Parameter(torch.randn(CHANNELS))
        self.bias = nn.Parameter(torch.randn(CHANNELS))

    def forward(self, x):
        y = F.group_norm(self.conv(x), 4, self.weight, self.bias)
        return x + F.relu(y)

def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]

def get_init_inputs():
    return []
