import torch
import torch.nn as nn
import torch.nn.functional as F

B, C, S = 8, 32, 64
SMALL = {"B": 2, "C": 4, "S": 8}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(C, C, 3, 3) * 0.1)
        self.bias = nn.Parameter(torch.randn(C))

    def forward(self, x):
        return torch.relu(F.conv_transpose2d(x, self.weight, self.bias, stride=2))


def get_inputs():
    return [torch.randn(B, C, S, S)]


def get_init_inputs():
    return []
