"""Five turns of a quintic iteration that makes a matrix nearly orthogonal, in bfloat16 behind a cast."""

import torch
import torch.nn as nn

ROWS, COLS = 512, 1024
SMALL = {"ROWS": 32, "COLS": 80}


class Model(nn.Module):
    def forward(self, g):
        a, b, c = 3.4445, -4.7750, 2.0315
        x = g.bfloat16()
        x = x / (x.norm() + 1e-7)
        for _ in range(5):
            s = x @ x.t()
            x = a * x + (b * s + c * s @ s) @ x
        return x


def get_inputs():
    return [torch.randn(ROWS, COLS)]
