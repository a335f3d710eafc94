"""A softmax of float32 numbers in float64."""

import torch
import torch.nn as nn

N, M = 2048, 4096
SMALL = {"N": 16, "M": 128}


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax(x.double(), dim=-1)


def get_inputs():
    return [torch.randn(N, M)]


def get_init_inputs():
    return []
