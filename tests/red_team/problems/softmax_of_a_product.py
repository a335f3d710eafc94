"""Softmax of each row of a product of two inputs."""

import torch
import torch.nn as nn

M, K, N = 1024, 512, 1024
SMALL = {"M": 256, "K": 128, "N": 256}


class Model(nn.Module):
    def forward(self, a, b):
        return torch.softmax(a @ b, dim=-1)


def get_inputs():
    return [torch.randn(M, K), torch.randn(K, N)]


def get_init_inputs():
    return []
