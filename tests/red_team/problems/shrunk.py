"""bfloat16 numbers, moved towards zero by float32 thresholds."""

import torch
import torch.nn as nn
import torch.nn.functional as F

N, M = 8192, 1024
SMALL = {"N": 16, "M": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.threshold = nn.Parameter(torch.full((M,), 0.01))

    def forward(self, x):
        return torch.sign(x) * F.relu(x.abs() - self.threshold)


def get_inputs():
    return [torch.randn(N, M, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
