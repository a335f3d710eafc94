"""Pairs of channels that turn by the angle of their row: 16 heads of queries, 4 of keys."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, q, k, cos, sin):
        def turned(x):
            left, right = x.chunk(2, -1)
            return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)

        cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
        return turned(q), turned(k)


def get_inputs():
    angle = torch.rand(2048, 64)
    return [torch.randn(2048, 16, 128), torch.randn(2048, 4, 128), angle.cos(), angle.sin()]


def get_init_inputs():
    return []
