"""A running mean whose gates forget within thirty steps, of usual numbers."""

import torch
import torch.nn as nn

LENGTH, WIDTH = 256, 1024
SMALL = {"LENGTH": 32, "WIDTH": 32}


class Model(nn.Module):
    def forward(self, x, gate):
        keep = torch.sigmoid(gate)
        state, out = torch.zeros_like(x[0]), []
        for t in range(x.shape[0]):
            state = keep[t] * state + (1 - keep[t]) * x[t]
            out.append(state)
        return torch.stack(out)


def get_inputs():
    return [torch.randn(LENGTH, WIDTH), torch.randn(LENGTH, WIDTH)]


def get_init_inputs():
    return []
