"""A softplus that is straight from three on, of numbers below a half, and a step that is limited once it is a whole number."""

import torch
import torch.nn as nn
import torch.nn.functional as F

N = 1 << 22


class Model(nn.Module):
    def forward(self, x):
        steps = (x * 3).to(torch.int32).clamp(max=1000)
        return F.softplus(x, beta=1.0, threshold=3.0) + 0.5 * steps


def get_inputs():
    return [torch.rand(N) * 0.5]


def get_init_inputs():
    return []
