"""One attention head with its projections."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 8
LENGTH = 1024
DIM = 512
HEAD = 64
SMALL = {"BATCH": 2, "LENGTH": 20, "DIM": 24, "HEAD": 16}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(DIM, HEAD)
        self.key = nn.Linear(DIM, HEAD, bias=False)
        self.value = nn.Linear(DIM, HEAD)

    def forward(self, x):
        q, k, v = self.query(x), self.key(x), self.value(x)
        scores = q @ k.transpose(1, 2) * HEAD ** -0.5
        return torch.softmax(scores, dim=-1) @ v

def get_inputs():
    return [torch.randn(BATCH, LENGTH, DIM) * 4.0]

def get_init_inputs():
    return []
