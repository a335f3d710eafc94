"""Decays of several states for each channel, which begin alike in all of them, as a state space model's do."""

import torch
import torch.nn as nn

N, D, S = 4096, 1024, 8
SMALL = {"N": 64, "D": 48}


class Model(nn.Module):
    def __init__(self, dim, states):
        super().__init__()
        self.log_decay = nn.Parameter(torch.log(torch.arange(1, states + 1).float()).repeat(dim, 1))

    def forward(self, x):
        return torch.exp(-torch.exp(self.log_decay) * x.abs()[..., None]).sum(-1)


def get_inputs():
    return [torch.randn(N, D)]


def get_init_inputs():
    return [D, S]
