"""A few rows times a large weight in bfloat16: nearly all of its time is that of the weight's bytes."""

import torch
import torch.nn as nn

ROWS, FEATURES, UNITS = 2, 8192, 8192
SMALL = {"FEATURES": 512, "UNITS": 256}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(FEATURES, UNITS, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        return self.fc(x)


def get_inputs():
    return [torch.randn(ROWS, FEATURES).bfloat16()]


def get_init_inputs():
    return []
