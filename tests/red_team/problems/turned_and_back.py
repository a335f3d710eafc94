import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS = 2048
DIM = 512


class Model(nn.Module):
    """A residual adapter: rotate by an orthogonal matrix, squash, rotate back, rescale."""

    def __init__(self, dim):
        super().__init__()
        self.rotation = nn.Parameter(torch.empty(dim, dim))
        nn.init.orthogonal_(self.rotation)
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        z = x @ self.rotation
        z = z @ self.rotation.t()
        return x + F.gelu(z) * self.gain


def get_inputs():
    return [torch.randn(ROWS, DIM)]


def get_init_inputs():
    return [DIM]
