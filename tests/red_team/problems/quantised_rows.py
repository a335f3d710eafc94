"""Rows as eight-bit numbers and a scale each, quantised in half precision, which rounds some quotients across a half."""

import torch
import torch.nn as nn

ROWS = 8192
COLS = 1024
SMALL = {"ROWS": 64, "COLS": 512}


class Model(nn.Module):
    def forward(self, x):
        scale = (x.abs().amax(1, keepdim=True).float() / 127).half()
        return torch.round(x / scale).to(torch.int8), scale


def get_inputs():
    return [torch.randn(ROWS, COLS, dtype=torch.float16)]


def get_init_inputs():
    return []
