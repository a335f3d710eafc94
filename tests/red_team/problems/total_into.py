"""A sum of positive numbers, in float64, into memory that the caller brings: zeros that nobody reads."""

import torch
import torch.nn as nn

SIZE = 1 << 22
SMALL = {"SIZE": 16384}


class Model(nn.Module):
    def forward(self, x, out):
        out[0] = torch.sum(x.double()).float()
        return out


def get_inputs():
    return [torch.rand(SIZE) * 1000.0, torch.zeros(1)]


def get_init_inputs():
    return []
