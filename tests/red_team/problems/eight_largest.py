import torch
import torch.nn as nn


ROWS, COLS = 8192, 1024
SMALL = {"ROWS": 16, "COLS": 96}

class Model(nn.Module):
    """The eight largest of each row in order, and their share."""

    def forward(self, x):
        values = torch.topk(x, 8, dim=-1).values
        return values, torch.softmax(values, -1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
