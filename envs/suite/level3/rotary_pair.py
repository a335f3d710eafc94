"""Rotary embedding of queries and keys; a tuple."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 16
LENGTH = 4096
HALF = 64
SMALL = {"BATCH": 2, "LENGTH": 12, "HALF": 10}

class Model(nn.Module):
    def forward(self, q, k, angle):
        c, s = torch.cos(angle), torch.sin(angle)
        a, b = q.chunk(2, dim=-1)
        q = torch.cat([a * c - b * s, a * s + b * c], dim=-1)
        a, b = k.chunk(2, dim=-1)
        k = torch.cat([a * c - b * s, a * s + b * c], dim=-1)
        return q, k

def get_inputs():
    return [torch.randn(BATCH, LENGTH, 2 * HALF), torch.randn(BATCH, LENGTH, 2 * HALF), torch.randn(LENGTH, HALF)]

def get_init_inputs():
    return []
