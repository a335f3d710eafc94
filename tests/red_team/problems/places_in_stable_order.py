"""Places of numbers in their order; equal ones stay in the order that they have."""

import torch
import torch.nn as nn
import torch.nn.functional as F

N, M = 8192, 512
SMALL = {"N": 16, "M": 64}


class Model(nn.Module):
    def forward(self, x):
        return torch.argsort(x, dim=-1, stable=True)


def get_inputs():
    return [torch.randint(0, 20, (N, M), dtype=torch.int32)]


def get_init_inputs():
    return []
