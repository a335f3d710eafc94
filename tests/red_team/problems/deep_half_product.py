import torch
import torch.nn as nn

M, N, K = 512, 1024, 8192


class Model(nn.Module):
    """A product of half precision with a long sum."""

    def forward(self, x, w):
        return x @ w


def get_inputs():
    return [torch.randn(M, K, dtype=torch.float16), torch.randn(K, N, dtype=torch.float16)]


def get_init_inputs():
    return []
