"""A running mean into which little of the new weights goes."""

import torch
import torch.nn as nn
import torch.nn.functional as F

N = 1 << 22
SMALL = {"N": 4000}


class Model(nn.Module):
    def forward(self, avg, w):
        return 0.99999 * avg + 1e-5 * w


def get_inputs():
    return [torch.randn(N), torch.randn(N)]


def get_init_inputs():
    return []
