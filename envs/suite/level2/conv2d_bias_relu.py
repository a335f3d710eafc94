"""Two-dimensional convolution, bias, ReLU."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 16
CHANNELS = 64
SIZE = 64
SMALL = {"BATCH": 2, "CHANNELS": 4, "SIZE": 10}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(CHANNELS, CHANNELS, 3, 3))
        self.bias = nn.Parameter(torch.randn(CHANNELS))

    def forward(self, x):
        x = F.conv2d(x, self.weight, self.bias, padding=1)
        return F.relu(x)

def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]

def get_init_inputs():
    return []
