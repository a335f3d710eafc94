"""A step with one mean of squares for each row, as in Adafactor: of a row of zeros beside a mean of zero the epsilon alone is left."""

import torch
import torch.nn as nn

ROWS, COLS = 1024, 512


class Model(nn.Module):
    def forward(self, weight, gradient, mean):
        mean = 0.9 * mean + 0.1 * (gradient * gradient + 1e-30).mean(1)
        return weight - 1e-2 * gradient * torch.rsqrt(mean)[:, None], mean


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.rand(ROWS)]


def get_init_inputs():
    return []
