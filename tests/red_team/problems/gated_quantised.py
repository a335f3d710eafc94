import torch
import torch.nn as nn
import torch.nn.functional as F


ROWS, COLS = 4096, 4096
SMALL = {"ROWS": 12, "COLS": 160}

class Model(nn.Module):
    """A gated product whose rows are rounded to eight bits, with a scale each."""

    def forward(self, x, gate):
        y = F.silu(gate) * x
        scale = y.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 127
        return torch.round(y / scale).clamp(-127, 127).to(torch.int8), scale


def get_inputs():
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]


def get_init_inputs():
    return []
