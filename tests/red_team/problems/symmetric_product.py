"""A symmetric matrix times a vector."""

import torch
import torch.nn as nn

SIZE = 4096
SMALL = {"SIZE": 96}


def symmetric():
    a = torch.randn(SIZE, SIZE)
    return (a + a.t()) / 2


class Model(nn.Module):
    def forward(self, a, x):
        return a @ x


def get_inputs():
    return [symmetric(), torch.randn(SIZE)]


def get_init_inputs():
    return []
