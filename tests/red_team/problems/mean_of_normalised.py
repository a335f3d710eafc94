import torch
import torch.nn as nn

B, C, S = 32, 64, 28
SMALL = {"B": 4, "C": 8, "S": 6}


class Model(nn.Module):
    """Behind a normalisation the mean of a channel is zero, and so is that of a product of channels: `second`'s running mean is
    what roundings leave."""

    def __init__(self):
        super().__init__()
        self.first = nn.BatchNorm2d(C)
        self.mix = nn.Conv2d(C, C, 1, bias=False)
        self.second = nn.BatchNorm2d(C)

    def forward(self, x):
        return torch.relu(self.second(self.mix(self.first(x))))


def get_inputs():
    return [torch.randn(B, C, S, S)]


def get_init_inputs():
    return []
