import torch
import torch.nn as nn


class Model(nn.Module):
    """A softmax of scores with a bias for each place, whose length is a number of the class."""

    def __init__(self, heads):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(heads, 196, 196))

    def forward(self, x):
        return torch.softmax(x * 0.25 + self.bias, -1)


def get_inputs():
    return [torch.randn(64, 16, 196, 196)]


def get_init_inputs():
    return [16]
