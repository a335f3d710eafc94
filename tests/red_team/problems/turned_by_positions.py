"""Heads turned by the positions of their tokens, which each sequence has of its own, though all have the same ones."""

import torch
import torch.nn as nn

BATCH, SEQ, DIM = 16, 2048, 128
SMALL = {"BATCH": 3, "SEQ": 48, "DIM": 32}


class Model(nn.Module):
    def forward(self, x, positions):
        half = x.shape[-1] // 2
        rates = torch.exp(-torch.arange(half, device=x.device) / half * 4.0)
        angles = positions[..., None].float() * rates
        one, other = x[..., :half], x[..., half:]
        return torch.cat([one * angles.cos() - other * angles.sin(), other * angles.cos() + one * angles.sin()], -1)


def get_inputs():
    return [torch.randn(BATCH, SEQ, DIM), torch.arange(SEQ).repeat(BATCH, 1)]


def get_init_inputs():
    return []
