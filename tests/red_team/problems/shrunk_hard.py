import torch
import torch.nn as nn
import torch.nn.functional as F

COUNT = 1 << 24
SMALL = {"COUNT": 5000}


class Model(nn.Module):
    def forward(self, x):
        return F.threshold(x, 0.5, -1.0) + F.hardshrink(x, 0.25)


def get_inputs():
    return [torch.randn(COUNT)]


def get_init_inputs():
    return []
