"""One step of Lion: weights move by the sign of a mean of gradient and momentum."""

import torch
import torch.nn as nn

N = 4194304
SMALL = {"N": 3000}


class Model(nn.Module):
    def __init__(self, lr, b1, b2, wd):
        super().__init__()
        self.lr, self.b1, self.b2, self.wd = lr, b1, b2, wd

    def forward(self, p, g, m):
        moved = p * (1 - self.lr * self.wd) - self.lr * torch.sign(m * self.b1 + g * (1 - self.b1))
        return moved, m * self.b2 + g * (1 - self.b2)


def get_inputs():
    return [torch.randn(N), torch.randn(N), torch.randn(N)]


def get_init_inputs():
    return [0.01, 0.9, 0.99, 0.1]
