"""A hash of whole numbers of 64 bits, in as many operators as it has steps."""

import torch
import torch.nn as nn

N = 1 << 24
SMALL = {"N": 16384}


class Model(nn.Module):
    def forward(self, x):
        h = x
        for _ in range(24):
            h = h * 6364136223846793005 + 1442695040888963407
            h = h ^ (h >> 17)
        return h

def get_inputs():
    return [torch.randint(0, 1 << 62, (N,))]


def get_init_inputs():
    return []
