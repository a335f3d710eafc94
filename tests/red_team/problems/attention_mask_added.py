import torch
import torch.nn as nn

H, T, D = 16, 1024, 64
SMALL = {"H": 2, "T": 80, "D": 32}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.full((T, T), float("-inf")).triu(1))

    def forward(self, q, k, v):
        return torch.softmax(q @ k.transpose(-1, -2) * D**-0.5 + self.mask, dim=-1) @ v


def get_inputs():
    return [torch.randn(H, T, D) for _ in range(3)]


def get_init_inputs():
    return []
