"""A product of float32 inputs and weights that are kept in half precision and cast: it does not run in float64 as it stands."""

import torch
import torch.nn as nn

M = 2048
K = 512
N = 512
SMALL = {"M": 64, "K": 128, "N": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N).half(), requires_grad=False)

    def forward(self, x):
        return x @ self.weight.float()


def get_inputs():
    return [torch.randn(M, K)]


def get_init_inputs():
    return []
