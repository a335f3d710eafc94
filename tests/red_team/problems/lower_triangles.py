import torch
import torch.nn as nn

N = 4096
SMALL = {"N": 160}


class Model(nn.Module):
    """The product of two lower triangles, which is one."""

    def forward(self, a, b):
        return torch.tril(torch.matmul(a, b))


def get_inputs():
    return [torch.tril(torch.rand(N, N)) for _ in range(2)]


def get_init_inputs():
    return []
