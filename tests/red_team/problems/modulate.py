import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """A layer norm of which the caller gives scale and shift for each sequence."""

    def forward(self, x, shift, scale):
        return F.layer_norm(x, (x.shape[-1],), eps=1e-6) * (1 + scale[:, None]) + shift[:, None]


def get_inputs():
    return [torch.randn(16, 1024, 1152), torch.randn(16, 1152), torch.randn(16, 1152)]


def get_init_inputs():
    return []
