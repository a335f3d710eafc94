"""A residual beside what a mask of truth values keeps."""

import torch
import torch.nn as nn

SIZE = 1 << 25
SMALL = {"SIZE": 8192}


class Model(nn.Module):
    def forward(self, x, residual, mask):
        return residual + torch.where(mask, x * (1 / 0.9), 0.0)


def get_inputs():
    return [torch.randn(SIZE), torch.randn(SIZE), torch.rand(SIZE) > 0.1]


def get_init_inputs():
    return []
