import torch
import torch.nn as nn

HEADS, T, D = 16, 1024, 64
SMALL = {"HEADS": 2, "T": 64, "D": 32}


class Model(nn.Module):
    """Causal attention with a learned score for each head that takes a share and gives nothing."""

    def __init__(self):
        super().__init__()
        self.sink = nn.Parameter(torch.zeros(HEADS))

    def forward(self, q, k, v):
        scores = q @ k.mT / D**0.5
        scores = scores.masked_fill(torch.ones(T, T, device=q.device).triu(1) > 0, float("-inf"))
        scores = torch.cat([scores, self.sink[:, None, None].expand(HEADS, T, 1)], -1)
        return torch.softmax(scores, -1)[..., :-1] @ v


def get_inputs():
    return [torch.randn(HEADS, T, D) for _ in range(3)]


def get_init_inputs():
    return []
