"""A max pool with places, of windows that overlap and stick out at the end."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH, CHANNELS, HEIGHT, WIDTH = 16, 64, 127, 129
SMALL = {"BATCH": 2, "CHANNELS": 3, "HEIGHT": 15, "WIDTH": 21}


class Model(nn.Module):
    def forward(self, x):
        y, at = F.max_pool2d(x, 3, stride=2, ceil_mode=True, return_indices=True)
        return y, at


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, HEIGHT, WIDTH)]
