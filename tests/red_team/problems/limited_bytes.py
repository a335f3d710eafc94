import torch
import torch.nn as nn

R, C = 4096, 4096
SMALL = {"R": 16, "C": 256}


class Model(nn.Module):
    def forward(self, x):
        return torch.clamp(torch.round(x * 100), -128, 127).to(torch.int8)


def get_inputs():
    return [torch.randn(R, C)]


def get_init_inputs():
    return []
