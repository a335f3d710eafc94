import torch
import torch.nn as nn
import torch.nn.functional as F

B, C = 4096, 1024
SMALL = {"B": 8, "C": 128}


class Model(nn.Module):
    def forward(self, x):
        return torch.sigmoid(x * 1e-5)


def get_inputs():
    return [torch.randn(B, C)]


def get_init_inputs():
    return []
