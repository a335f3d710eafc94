"""tanh of numbers between -3 and 3 in five axes: eight times as much is 24, and 170 times as much 510."""

import torch
import torch.nn as nn

BATCH, CHANNELS, DEPTH, SIZE = 32, 16, 32, 64
SMALL = {"BATCH": 8, "CHANNELS": 8, "DEPTH": 8, "SIZE": 16}


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)


def get_inputs():
    return [torch.rand(BATCH, CHANNELS, DEPTH, SIZE, SIZE) * 6.0 - 3.0]


def get_init_inputs():
    return []
