"""How many numbers lie in each of sixteen bins from zero to one, the last of which has the one itself."""

import torch
import torch.nn as nn

COUNT = 1 << 22
SMALL = {"COUNT": 4096}


class Model(nn.Module):
    def forward(self, x):
        return torch.histc(x, 16, 0.0, 1.0)


def get_inputs():
    return [torch.rand(COUNT)]


def get_init_inputs():
    return []
