"""A sine divided by its number, which is 1 at zero."""

import torch
import torch.nn as nn

N = 1 << 22
SMALL = {"N": 16384}


class Model(nn.Module):
    def forward(self, x):
        return torch.where(x == 0, torch.ones_like(x), torch.sin(x) / x)

def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
