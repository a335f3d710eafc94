"""Two products in bfloat16, one of them scaled, of weights that were drawn in float32."""

import torch
import torch.nn as nn

ROWS, WIDTH = 64, 512


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k = nn.Linear(WIDTH, WIDTH, bias=False)
        self.to(torch.bfloat16)

    def forward(self, x):
        return torch.relu(torch.cat([self.q(x) * 0.35, self.k(x)], 1))


def get_inputs():
    return [torch.randn(ROWS, WIDTH).bfloat16()]


def get_init_inputs():
    return []
