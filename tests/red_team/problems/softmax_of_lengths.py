import torch
import torch.nn as nn


class Model(nn.Module):
    """A softmax within lengths that are drawn below a number that is greater by one than the longest."""

    def forward(self, x, lengths):
        keep = torch.arange(x.shape[-1], device=x.device)[None, None] < lengths[:, None, None]
        return torch.softmax((x * 0.125).masked_fill(~keep, float('-inf')), -1)


def get_inputs():
    return [torch.randn(8, 64, 1024), torch.randint(256, 1025, (8,))]


def get_init_inputs():
    return []
