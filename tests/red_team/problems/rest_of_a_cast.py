import torch
import torch.nn as nn

N = 512
SMALL = {"N": 48}


class Model(nn.Module):
    """The product of what bfloat16 leaves of a tensor, the second of two of a split product."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(N, N) * 0.1)

    def forward(self, x):
        rest = x.to(torch.float32) - x.to(torch.bfloat16).to(torch.float32)
        return rest @ self.weight


def get_inputs():
    return [torch.randn(N, N)]


def get_init_inputs():
    return []
