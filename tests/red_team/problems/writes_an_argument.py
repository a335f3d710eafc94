import torch
import torch.nn as nn

R, C = 4096, 4096
SMALL = {"R": 8, "C": 256}


class Model(nn.Module):
    def forward(self, x, out):
        out.copy_(torch.relu(x))


def get_inputs():
    return [torch.randn(R, C), torch.zeros(R, C)]


def get_init_inputs():
    return []
