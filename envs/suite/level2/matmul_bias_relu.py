"""Linear layer, ReLU."""
import torch
import torch.nn as nn
import torch.nn.functional as F

M = 2048
N = 2048
K = 1024
SMALL = {"M": 24, "N": 40, "K": 56}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(K, N))
        self.bias = nn.Parameter(torch.randn(N))

    def forward(self, x):
        x = x @ self.weight
        x = x + self.bias
        return F.relu(x)

def get_inputs():
    return [torch.randn(M, K)]

def get_init_inputs():
    return []
