import torch
import torch.nn as nn
import torch.nn.functional as F

N, K = (1 << 22) - 24, 64  # its last block is padded
SMALL = {"N": 1000}


class Model(nn.Module):
    def forward(self, x):
        return torch.zeros(K, dtype=torch.int64, device=x.device).scatter_add_(0, x, torch.ones_like(x))


def get_inputs():
    return [torch.randint(0, K, (N,))]


def get_init_inputs():
    return []
