"""A moment without its bias at a step, which is one whole number in a tensor, the same in each draw."""

import torch
import torch.nn as nn

SIZE = 1 << 22
SMALL = {"SIZE": 16384}


class Model(nn.Module):
    def forward(self, moment, step):
        return moment / (1 - 0.9 ** step.float())


def get_inputs():
    return [torch.randn(SIZE), torch.tensor([10])]


def get_init_inputs():
    return []
