import torch
import torch.nn as nn
import torch.nn.functional as F

B, C = 8192, 1000
SMALL = {"B": 8, "C": 100}


class Model(nn.Module):
    def forward(self, x, mask):
        return (x * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)


def get_inputs():
    return [torch.randn(B, C), (torch.rand(B, C) > 0.3).float()]


def get_init_inputs():
    return []
