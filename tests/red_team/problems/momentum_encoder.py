import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 512
DIM = 256
OUT = 128
TAU = 0.1


class Model(nn.Module):
    """MoCo's logits: queries of an encoder against keys of a momentum copy of it."""

    def __init__(self, dim, out):
        super().__init__()
        self.query = nn.Linear(dim, out)
        self.key = copy.deepcopy(self.query)
        for p in self.key.parameters():
            p.requires_grad_(False)

    def forward(self, a, b):
        q = F.normalize(self.query(a), dim=-1)
        k = F.normalize(self.key(b), dim=-1)
        return (q * k).sum(-1) / TAU


def get_inputs():
    return [torch.randn(BATCH, DIM), torch.randn(BATCH, DIM)]


def get_init_inputs():
    return [DIM, OUT]
