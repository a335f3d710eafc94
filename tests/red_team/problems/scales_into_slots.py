"""The scales of new rows in 8 bits into the slots that numbers name: of 16,384 slots 4,096 are named, and of these few are low."""

import torch
import torch.nn as nn

SLOTS, TOKENS, HEADS, DIM = 16384, 4096, 8, 128
SMALL = {"SLOTS": 64, "TOKENS": 32, "HEADS": 2, "DIM": 32}


class Model(nn.Module):
    def forward(self, key, scales, slots):
        scales = scales.clone()
        scales[slots] = (key.abs().amax(-1) / 127.0).clamp(min=1e-6)
        return scales


def get_inputs():
    return [torch.randn(TOKENS, HEADS, DIM), torch.rand(SLOTS, HEADS), torch.randperm(SLOTS)[:TOKENS]]


def get_init_inputs():
    return []
