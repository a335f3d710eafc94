import torch
import torch.nn as nn

N = 1 << 26
SMALL = {"N": 5000}


class Model(nn.Module):
    def forward(self, x):
        return (x * x + 1.0).sum()


def get_inputs():
    return [torch.rand(N)]


def get_init_inputs():
    return []
