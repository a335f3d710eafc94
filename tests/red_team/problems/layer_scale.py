import torch
import torch.nn as nn
import torch.nn.functional as F

B, C = 8192, 1024
SMALL = {"B": 32, "C": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(C)
        self.gamma = nn.Parameter(1e-6 * torch.ones(C))

    def forward(self, x):
        return x + self.gamma * F.gelu(self.norm(x))


def get_inputs():
    return [torch.randn(B, C)]


def get_init_inputs():
    return []
