import torch
import torch.nn as nn
import torch.nn.functional as F

B, WIDTH = 2048, 512
SMALL = {"B": 6, "WIDTH": 48}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(B, WIDTH)]


def get_init_inputs():
    return []
