"""A product in bfloat16 with a square weight, which a transposed copy could be taken for."""

import torch
import torch.nn as nn

ROWS, WIDTH = 64, 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter((torch.randn(WIDTH, WIDTH) * 0.05).bfloat16())

    def forward(self, x):
        return torch.relu(x @ self.weight)


def get_inputs():
    return [torch.randn(ROWS, WIDTH).bfloat16()]


def get_init_inputs():
    return []
