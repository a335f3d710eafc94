"""One step of an LSTM over a batch, by torch's own cell."""

import torch
from torch import nn

BATCH, INPUT, HIDDEN = 256, 512, 1024
SMALL = {"BATCH": 8, "INPUT": 32, "HIDDEN": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(INPUT, HIDDEN)

    def forward(self, x, h, c):
        return self.cell(x, (h, c))


def get_inputs():
    return [torch.randn(BATCH, INPUT), torch.randn(BATCH, HIDDEN), torch.randn(BATCH, HIDDEN)]


def get_init_inputs():
    return []
