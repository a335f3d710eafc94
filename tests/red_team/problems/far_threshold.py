"""A ramp that begins far beyond what is drawn."""

import torch
import torch.nn as nn

N = 1 << 22
SMALL = {"N": 16384}


class Model(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x) + torch.relu(x - 100.0)

def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
