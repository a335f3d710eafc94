"""A product of float32 matrices, whose text asks for their dtypes before it multiplies."""

import torch
import torch.nn as nn

ROWS = 2048
INNER = 1024
COLUMNS = 4096
SMALL = {"ROWS": 48, "INNER": 64, "COLUMNS": 96}


class Model(nn.Module):
    def forward(self, a, b):
        assert a.dtype == b.dtype == torch.float32
        return a @ b


def get_inputs():
    return [torch.randn(ROWS, INNER), torch.randn(INNER, COLUMNS)]


def get_init_inputs():
    return []
