"""A product whose sums are much longer than its rows and columns are many."""

import torch
import torch.nn as nn

M, N, K = 256, 256, 16384
SMALL = {"M": 32, "N": 32, "K": 256}


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
