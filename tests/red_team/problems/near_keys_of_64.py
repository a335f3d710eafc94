"""An attention to the 64 keys before each query, whose heads have 64 channels, too: one number for two sizes."""

import torch
import torch.nn as nn

H, T, D, NEAR = 8, 1024, 64, 64
SMALL = {"H": 1, "T": 96, "D": 32, "NEAR": 32}


class Model(nn.Module):
    def forward(self, q, k, v):
        place = torch.arange(T, device=q.device)
        back = place[:, None] - place[None, :]
        scores = q @ k.transpose(-1, -2) * D**-0.5
        return scores.masked_fill((back < 0) | (back >= NEAR), float("-inf")).softmax(-1) @ v


def get_inputs():
    return [torch.randn(H, T, D) for _ in range(3)]


def get_init_inputs():
    return []
