"""A logarithm that no larger inputs survive, plus a bias of zeros."""

import torch
import torch.nn as nn

ROWS, COLS = 4096, 4096
SMALL = {"ROWS": 16, "COLS": 96}


class Model(nn.Module):
    def forward(self, x, bias):
        return torch.log(1 - x * x) + bias


def get_inputs():
    return [torch.rand(ROWS, COLS) * 0.9, torch.zeros(COLS)]


def get_init_inputs():
    return []
