"""A cross entropy in which likely labels count less, as in detectors of rare things."""

import torch
import torch.nn as nn

N, C = 8192, 1000
SMALL = {"N": 64, "C": 120}


class Model(nn.Module):
    def forward(self, x, y):
        l = torch.log_softmax(x, -1).gather(1, y[:, None])[:, 0]
        return (-(1 - l.exp()) ** 2 * l).mean()


def get_inputs():
    return [torch.randn(N, C), torch.randint(0, C, (N,))]


def get_init_inputs():
    return []
