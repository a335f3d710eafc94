"""Where shares, added up, reach a level that is drawn, as tokens are chosen."""

import torch
import torch.nn as nn

ROWS, COLS = 8192, 4096
SMALL = {"ROWS": 24, "COLS": 96}


class Model(nn.Module):
    def forward(self, shares, levels):
        return torch.searchsorted(shares.cumsum(-1), levels[:, None]).squeeze(1)


def get_inputs():
    return [torch.randn(ROWS, COLS).softmax(-1), torch.rand(ROWS)]


def get_init_inputs():
    return []
