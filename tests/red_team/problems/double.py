import torch
import torch.nn as nn
import torch.nn.functional as F

B, C = 1024, 1024
SMALL = {"B": 8, "C": 64}


class Model(nn.Module):
    def forward(self, x, y):
        return torch.relu(x @ y)


def get_inputs():
    return [torch.randn(B, C, dtype=torch.float64), torch.randn(C, B, dtype=torch.float64)]


def get_init_inputs():
    return []
