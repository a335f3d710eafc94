import torch
import torch.nn as nn

H, T, D, WINDOW = 16, 4096, 64, 256
SMALL = {"H": 2, "T": 256, "D": 32, "WINDOW": 96}


class Model(nn.Module):
    """Each query sees the keys of a short window before it."""

    def forward(self, q, k, v):
        place = torch.arange(T, device=q.device)
        back = place[:, None] - place[None, :]
        scores = q @ k.transpose(-1, -2) * D**-0.5
        scores = scores.masked_fill((back < 0) | (back >= WINDOW), float("-inf"))
        return torch.softmax(scores, dim=-1) @ v


def get_inputs():
    return [torch.randn(H, T, D) for _ in range(3)]


def get_init_inputs():
    return []
