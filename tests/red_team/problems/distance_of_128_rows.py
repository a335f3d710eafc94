"""The mean of the squared differences of two blocks of rows."""

import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.mean((x - y) ** 2)


ROWS = 128
COLUMNS = 4096


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
