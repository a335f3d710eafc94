"""How often each value occurs, of as many values as are named."""

import torch
import torch.nn as nn

COUNT, VALUES = 1 << 22, 1024
SMALL = {"COUNT": 4096}


class Model(nn.Module):
    def forward(self, values):
        return torch.bincount(values, minlength=VALUES)


def get_inputs():
    return [torch.randint(0, VALUES, (COUNT,))]


def get_init_inputs():
    return []
