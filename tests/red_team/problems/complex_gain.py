import torch
import torch.nn as nn

ROWS, COLS = 2048, 1024
SMALL = {"ROWS": 24, "COLS": 96}


class Model(nn.Module):
    """The size of a signal under a complex gain and a complex shift, both numbers of the host."""

    def __init__(self, gain: complex):
        super().__init__()
        self.gain = gain

    def forward(self, x, shift):
        return torch.abs(x * self.gain + shift)


def get_inputs():
    return [torch.randn(ROWS, COLS), 0.5 + 0.25j]


def get_init_inputs():
    return [0.75 - 2j]
