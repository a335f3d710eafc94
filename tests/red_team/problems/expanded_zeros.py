import torch
import torch.nn as nn

N, K = 4096, 2048
SMALL = {"N": 24, "K": 64}


class Model(nn.Module):
    """One row of zeros is added to every row."""

    def forward(self, x, bias):
        return torch.relu(x + bias)


def get_inputs():
    return [torch.randn(N, K), torch.zeros(K).expand(N, K)]


def get_init_inputs():
    return []
