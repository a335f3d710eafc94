"""A step of gradient descent that moves weights by less than float32's tolerance."""

import torch
import torch.nn as nn
import torch.nn.functional as F

N = 1 << 22
SMALL = {"N": 4000}


class Model(nn.Module):
    def forward(self, w, g):
        return w - 1e-5 * g


def get_inputs():
    return [torch.randn(N), torch.randn(N)]


def get_init_inputs():
    return []
