import torch
import torch.nn as nn

ROWS, WIDTH, HIDDEN = 1024, 2048, 4096
SMALL = {"ROWS": 64, "WIDTH": 64, "HIDDEN": 128}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, HIDDEN)
        self.second = nn.Linear(HIDDEN, WIDTH)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))) + x


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return []
