import torch
import torch.nn as nn

M, K, N = 2048, 2048, 2048
SMALL = {"M": 64, "K": 96, "N": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(K, N) * 0.02)

    def forward(self, x):
        return torch.relu(x @ self.w)


def get_inputs():
    return [torch.randn(M, K)]


def get_init_inputs():
    return []
