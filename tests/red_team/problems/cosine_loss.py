import torch
import torch.nn as nn
import torch.nn.functional as F


ROWS, COLS = 16384, 512
SMALL = {"ROWS": 24, "COLS": 72}

class Model(nn.Module):
    """One less the cosine of alike pairs, the cosine above a margin of others."""

    def forward(self, a, b, target):
        return F.cosine_embedding_loss(a, b, target, margin=0.05)


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.randint(0, 2, (ROWS,)) * 2 - 1]


def get_init_inputs():
    return []
