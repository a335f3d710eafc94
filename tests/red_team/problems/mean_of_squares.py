"""A mean over all elements, which takes a second kernel for what the programs of the first have added up."""

import torch
import torch.nn as nn

ROWS, COLS = 4096, 1024
SMALL = {"ROWS": 24, "COLS": 192}


class Model(nn.Module):
    def forward(self, x):
        return (x * x).mean()


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
