import torch
import torch.nn as nn


SIZE = 1 << 24
SMALL = {"SIZE": 3000}

class Model(nn.Module):
    """Adds a number to each element that a hash makes of its place."""

    def forward(self, x):
        place = torch.arange(x.numel(), device=x.device)
        mixed = (place ^ (place >> 13)) * 40503 & 0xFFFF
        return x + mixed.float() / 65536


def get_inputs():
    return [torch.randn(SIZE)]


def get_init_inputs():
    return []
