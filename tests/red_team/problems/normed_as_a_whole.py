import torch
import torch.nn as nn
import torch.nn.functional as F
N, M = 8192, 8192
SMALL = {'N': 64, 'M': 64}

class Model(nn.Module):
    def forward(self, x):
        return (x - x.mean()) * torch.rsqrt(x.square().mean() + 1.0)
def get_inputs():
    return [torch.randn(N, M)]
def get_init_inputs():
    return []
