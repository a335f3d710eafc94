"""Numbers in place of NaN and infinity, of which none is drawn."""

import torch
import torch.nn as nn

N = 1 << 22
SMALL = {"N": 16384}


class Model(nn.Module):
    def forward(self, x):
        return torch.nan_to_num(x, nan=0.0, posinf=1.0, neginf=-1.0) * 2.0 + 1.0

def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
