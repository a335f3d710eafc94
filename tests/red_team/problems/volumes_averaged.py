import torch
import torch.nn as nn

N, C, D, H, W = 16, 32, 64, 64, 64


class Model(nn.Module):
    def __init__(self, window):
        super().__init__()
        self.pool = nn.AvgPool3d(window, stride=2, padding=1)

    def forward(self, x):
        return self.pool(x)


def get_inputs():
    return [torch.rand(N, C, D, H, W)]


def get_init_inputs():
    return [3]
