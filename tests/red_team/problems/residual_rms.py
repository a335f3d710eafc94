import torch
import torch.nn as nn
import torch.nn.functional as F

B, C = 4096, 2048
SMALL = {"B": 5, "C": 160}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(C, dtype=torch.bfloat16))

    def forward(self, x, r):
        h = x + r
        f = h.float()
        return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)).bfloat16() * self.gain, h


def get_inputs():
    return [torch.randn(B, C).bfloat16(), torch.randn(B, C).bfloat16()]


def get_init_inputs():
    return []
