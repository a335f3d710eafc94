import torch
import torch.nn as nn
import torch.nn.functional as F


BATCH, CHANNELS, SIDE = 8, 32, 128
SMALL = {"BATCH": 1, "CHANNELS": 3, "SIDE": 11}

class Model(nn.Module):
    """Pictures of twice the size, with a bias."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(CHANNELS))

    def forward(self, x):
        return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False) + self.bias[:, None, None]


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return []
