"""The mean of the 256 rows up to each one, as a product with a band."""

import torch
import torch.nn as nn

B, T, D = 4, 2048, 256
SMALL = {"B": 2, "T": 48, "D": 32}


class Model(nn.Module):
    def forward(self, x):
        i = torch.arange(x.shape[1], device=x.device)
        near = (i[None, :] <= i[:, None]) & (i[:, None] - i[None, :] < 256)
        return (near.float() / near.float().sum(-1, keepdim=True)) @ x


def get_inputs():
    return [torch.randn(B, T, D)]


def get_init_inputs():
    return []
