import torch
import torch.nn as nn

N = 1 << 24
SMALL = {"N": 4096}


class Model(nn.Module):
    def forward(self, x):
        return x[1:] * 1


def get_inputs():
    return [torch.randint(-1000, 1000, (N + 1,), dtype=torch.int16)]


def get_init_inputs():
    return []
