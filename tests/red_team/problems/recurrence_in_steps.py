"""A recurrent layer in plain steps."""

import torch
import torch.nn as nn

B, T, H = 64, 1024, 64
SMALL = {"B": 4, "T": 6, "H": 16}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(H, H) / H**0.5)

    def forward(self, x):
        h = x.new_zeros(x.shape[0], x.shape[2])
        turns = []
        for t in range(x.shape[1]):
            h = torch.tanh(x[:, t] + h @ self.w)
            turns.append(h)
        return torch.stack(turns, 1)


def get_inputs():
    return [torch.randn(B, T, H)]


def get_init_inputs():
    return []
