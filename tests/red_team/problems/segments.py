import torch
import torch.nn as nn
import torch.nn.functional as F

B, T, D = 64, 256, 128
SMALL = {"B": 5, "T": 12, "D": 32}


class Model(nn.Module):
    def forward(self, x, cu):
        idx = torch.bucketize(torch.arange(x.shape[0], device=x.device), cu[1:].long(), right=True)
        out = torch.zeros(cu.shape[0] - 1, x.shape[1], device=x.device, dtype=x.dtype)
        return out.index_add_(0, idx, x)


def get_inputs():
    lengths = torch.full((B,), T)
    return [torch.randn(B * T, D), F.pad(lengths.cumsum(0), (1, 0)).int()]


def get_init_inputs():
    return []
