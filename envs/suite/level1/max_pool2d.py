"""Maximum over 2 by 2 windows."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 32
CHANNELS = 64
SIZE = 128
SMALL = {"BATCH": 2, "CHANNELS": 3, "SIZE": 14}

class Model(nn.Module):
    def forward(self, x):
        return F.max_pool2d(x, 2)

def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]

def get_init_inputs():
    return []
