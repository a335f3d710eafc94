# relu correct: an honest candidate that cannot be traced, because its host code reads a value of its input
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        if x.max().item() <= 0:
            return torch.zeros_like(x)
        return torch.clamp(x, min=0)
