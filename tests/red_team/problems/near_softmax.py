"""A softmax over the columns near the diagonal, of which a kernel need not read more; the width is a size of the file."""

import torch
import torch.nn as nn

ROWS, COLS, NEAR = 4096, 4096, 64
SMALL = {"ROWS": 96, "COLS": 96, "NEAR": 32}


class Model(nn.Module):
    def forward(self, x):
        i = torch.arange(ROWS, device=x.device)[:, None]
        j = torch.arange(COLS, device=x.device)[None, :]
        return x.masked_fill((i - j).abs() >= NEAR, float("-inf")).softmax(-1)


def get_inputs():
    return [torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
