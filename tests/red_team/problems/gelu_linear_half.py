"""A linear layer in half precision with a GELU behind it."""

import torch
import torch.nn as nn
import torch.nn.functional as F

M, N, K = 4096, 4096, 4096
SMALL = {"M": 64, "N": 128, "K": 96}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(N, K, dtype=torch.bfloat16) * 0.02)
        self.bias = nn.Parameter(torch.randn(N, dtype=torch.bfloat16))

    def forward(self, x):
        return F.gelu(F.linear(x, self.weight, self.bias), approximate="tanh")


def get_inputs():
    return [torch.randn(M, K, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
