import torch
import torch.nn as nn
import torch.nn.functional as F

B, C = 4096, 2048
SMALL = {"B": 6, "C": 96}


class Model(nn.Module):
    def __init__(self, gain):
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(gain))
        self.shift = nn.Parameter(torch.zeros(1))
        self.register_buffer("eps", torch.tensor(0.125))

    def forward(self, x):
        return torch.relu(x) * self.gain / 2 + torch.exp(self.shift) + self.eps * x.shape[1]


def get_inputs():
    return [torch.randn(B, C)]


def get_init_inputs():
    return [1.5]
