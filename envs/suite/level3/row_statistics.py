"""Normalised rows with their mean and deviation; a dict."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 4096
COLS = 8192
SMALL = {"ROWS": 14, "COLS": 72}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        mean = x.mean(dim=1, keepdim=True)
        std = x.std(dim=1, keepdim=True)
        y = (x - mean) / (std + 1e-5) * self.weight
        return {"output": y, "mean": mean, "std": std}

def get_inputs():
    return [torch.randn(ROWS, COLS) * torch.rand(ROWS, 1) + torch.randn(ROWS, 1)]

def get_init_inputs():
    return []
