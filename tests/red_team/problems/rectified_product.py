import torch
import torch.nn as nn

M = 1024
K = 2048
N = 1024


class Model(nn.Module):
    """A product of rows that have been rectified: half of what is given is 0, elsewhere in each draw."""

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.relu(torch.randn(M, K)), torch.randn(K, N)]


def get_init_inputs():
    return []
