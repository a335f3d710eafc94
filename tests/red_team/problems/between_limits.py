"""A response that turns round within a band which normal numbers do not reach, and is bounded far outside."""

import torch
import torch.nn as nn

N = 1 << 22


class Model(nn.Module):
    def forward(self, x):
        found = torch.where((x > 90.0) & (x < 91.0), -x, 2 * x)
        return torch.minimum(found, torch.full_like(x, 4000.0))


def get_inputs():
    return [torch.randn(N)]


def get_init_inputs():
    return []
