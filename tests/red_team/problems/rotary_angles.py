"""Heads that are rotated by angles of their places, of which half precision holds the first 2,048 alone."""

import torch
import torch.nn as nn

BATCH, HEADS, PLACES, WIDTH = 2, 8, 8192, 64


class Model(nn.Module):
    def forward(self, x):
        half = x.shape[-1] // 2
        rates = 1.0 / 10000.0 ** (torch.arange(half, device=x.device).float() / half)
        angles = torch.arange(x.shape[2], device=x.device).float()[:, None] * rates
        left, right = x[..., :half], x[..., half:]
        cosines, sines = angles.cos(), angles.sin()
        return torch.cat([left * cosines - right * sines, right * cosines + left * sines], -1)


def get_inputs():
    return [torch.randn(BATCH, HEADS, PLACES, WIDTH)]


def get_init_inputs():
    return []
