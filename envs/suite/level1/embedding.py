"""Rows of a table gathered by index."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB = 50000
DIM = 1024
TOKENS = 16384
SMALL = {"VOCAB": 50, "DIM": 40, "TOKENS": 24}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(VOCAB, DIM))

    def forward(self, index):
        return F.embedding(index, self.table)

def get_inputs():
    return [torch.randint(0, VOCAB, (TOKENS,))]

def get_init_inputs():
    return []
