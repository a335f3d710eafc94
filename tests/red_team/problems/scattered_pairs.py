import torch
import torch.nn as nn

ROWS = 8192
COLS = 512


class Model(nn.Module):
    """Pairs of rows at other places, whose numbers count from one."""

    def forward(self, x, first):
        rows = (first[:, None] - 1 + torch.arange(2, device=x.device)).reshape(-1)
        y = torch.empty_like(x)
        y[rows] = x
        return y


def get_inputs():
    return [torch.randn(ROWS, COLS), 2 * torch.randperm(ROWS // 2) + 1]


def get_init_inputs():
    return []
