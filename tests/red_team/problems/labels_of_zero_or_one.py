"""A binary cross entropy at labels that are zeros and ones."""

import torch
import torch.nn as nn
import torch.nn.functional as F

N = 1 << 24
SMALL = {"N": 4000}


class Model(nn.Module):
    def forward(self, x, t):
        return F.binary_cross_entropy_with_logits(x, t, reduction="none")


def get_inputs():
    return [torch.randn(N), torch.randint(0, 2, (N,)).float()]


def get_init_inputs():
    return []
