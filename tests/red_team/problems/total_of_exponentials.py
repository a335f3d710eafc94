"""A sum of exponentials of as many numbers as whole blocks hold, compared at a count that fills none."""

import torch
import torch.nn as nn

N = 2 ** 24
SMALL = {"N": 5000}


class Model(nn.Module):
    def forward(self, x):
        return torch.exp(x).sum()


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
