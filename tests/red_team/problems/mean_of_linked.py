"""Means of the rows that a matrix of truth values links with each row, as layers of graph networks take them."""

import torch
import torch.nn as nn

NODES, WIDTH = 512, 256
SMALL = {"NODES": 64, "WIDTH": 32}


class Model(nn.Module):
    def forward(self, links, x):
        return (links @ x) / links.sum(1, keepdim=True).clamp(min=1.0)


def get_inputs():
    return [(torch.rand(NODES, NODES) < 0.1).float(), torch.randn(NODES, WIDTH)]


def get_init_inputs():
    return []
