"""Causal attention on given queries, keys and values."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 32
LENGTH = 1024
HEAD = 64
SMALL = {"BATCH": 2, "LENGTH": 24, "HEAD": 16}

class Model(nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.transpose(1, 2) * HEAD ** -0.5
        mask = torch.ones(LENGTH, LENGTH, device=q.device, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(mask, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v

def get_inputs():
    return [torch.randn(BATCH, LENGTH, HEAD), torch.randn(BATCH, LENGTH, HEAD), torch.randn(BATCH, LENGTH, HEAD)]

def get_init_inputs():
    return []
