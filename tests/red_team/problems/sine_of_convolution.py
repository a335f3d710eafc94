import torch
import torch.nn as nn

B, C, S = 16, 32, 64
SMALL = {"B": 2, "C": 8, "S": 8}


class Model(nn.Module):
    """Many turns of a sine for what tf32 rounds off: cuDNN's tf32 misses by about a tenth."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(C, C, 3, padding=1)

    def forward(self, x):
        return torch.sin(300.0 * self.conv(x))


def get_inputs():
    return [torch.randn(B, C, S, S)]


def get_init_inputs():
    return []
