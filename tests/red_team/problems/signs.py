import torch
import torch.nn as nn
import torch.nn.functional as F

COUNT = 1 << 24
SMALL = {"COUNT": 5000}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return torch.sign(x) * self.scale


def get_inputs():
    return [torch.randn(COUNT)]


def get_init_inputs():
    return []
