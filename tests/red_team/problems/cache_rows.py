"""New rows of a cache that the caller brings: forward writes a part of its argument and returns all of it."""

import torch
import torch.nn as nn

ROWS = 65536
NEW = 4096
WIDTH = 512
SMALL = {"ROWS": 64, "NEW": 8, "WIDTH": 96}


class Model(nn.Module):
    def forward(self, cache, rows):
        cache[ROWS // 2 : ROWS // 2 + NEW] = torch.relu(rows)
        return cache


def get_inputs():
    return [torch.zeros(ROWS, WIDTH), torch.randn(NEW, WIDTH)]


def get_init_inputs():
    return []
