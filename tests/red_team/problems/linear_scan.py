import torch
import torch.nn as nn
import torch.nn.functional as F

B, T = 512, 2048
SMALL = {"B": 4, "T": 100}


class Model(nn.Module):
    def forward(self, x):
        return torch.cumsum(x * x, dim=1) + torch.cummax(x, dim=1).values


def get_inputs():
    return [torch.randn(B, T)]


def get_init_inputs():
    return []
