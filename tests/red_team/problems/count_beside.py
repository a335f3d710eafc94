"""A softmax, and beside it a count of a number that the author's draws never hold."""

import torch
import torch.nn as nn

ROWS, COLS = 4096, 4096
SMALL = {"ROWS": 16, "COLS": 96}
WANTED = 5000


class Model(nn.Module):
    def forward(self, x, ids, wanted):
        return torch.softmax(x, -1), (ids == wanted).sum()


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randint(0, 1000, (ROWS,)), WANTED]


def get_init_inputs():
    return []
