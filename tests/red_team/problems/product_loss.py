"""The mean squared error of a product."""

import torch
import torch.nn as nn
import torch.nn.functional as F

N, K, M = 2048, 1024, 1024
SMALL = {"N": 40, "K": 64, "M": 48}


class Model(nn.Module):
    def __init__(self, K, M):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, M) / K**0.5)

    def forward(self, x, t):
        return F.mse_loss(x @ self.weight, t)


def get_inputs():
    return [torch.randn(N, K), torch.randn(N, M)]


def get_init_inputs():
    return [K, M]
