"""A limit that no number which is drawn comes near to."""

import torch
import torch.nn as nn
import torch.nn.functional as F

N = 1 << 22
SMALL = {"N": 16384}


class Model(nn.Module):
    def forward(self, x):
        return torch.clamp(F.silu(x) * 2.0 + 1.0, max=200.0)

def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
