"""A softmax of rows that are centred only where they are wide, as the small ones are not."""

import torch
import torch.nn as nn

R, C = 2048, 2048
SMALL = {"R": 16, "C": 64}


class Model(nn.Module):
    def forward(self, x):
        if x.shape[1] >= 1024:
            x = x - x.mean(1, keepdim=True)
        return torch.softmax(x, 1) * x


def get_inputs():
    return [torch.randn(R, C)]


def get_init_inputs():
    return []
