"""The Walsh-Hadamard transform of each row."""

import torch
import torch.nn as nn

ROWS, N = 8192, 1024


class Model(nn.Module):
    def forward(self, x):
        rows, n = x.shape
        y, h = x, 1
        while h < n:
            y = y.view(rows, n // (2 * h), 2, h)
            a, b = y[:, :, 0], y[:, :, 1]
            y = torch.stack((a + b, a - b), 2)
            h *= 2
        return y.reshape(rows, n) * n ** -0.5


def get_inputs():
    return [torch.randn(ROWS, N)]

def get_init_inputs():
    return []
