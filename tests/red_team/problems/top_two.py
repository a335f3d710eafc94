import torch
import torch.nn as nn
import torch.nn.functional as F

B, C = 8192, 512
SMALL = {"B": 6, "C": 50}


class Model(nn.Module):
    def forward(self, x):
        return torch.topk(x, 2, dim=1)


def get_inputs():
    return [torch.randn(B, C)]


def get_init_inputs():
    return []
