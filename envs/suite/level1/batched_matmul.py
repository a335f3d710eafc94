"""Matrix products of a batch."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 64
M = 512
N = 512
K = 512
SMALL = {"BATCH": 3, "M": 20, "N": 24, "K": 40}

class Model(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)

def get_inputs():
    return [torch.randn(BATCH, M, K), torch.randn(BATCH, K, N)]

def get_init_inputs():
    return []
