import torch
import torch.nn as nn

N = 4096
SMALL = {"N": 160}


class Model(nn.Module):
    """The product of two upper triangles, which is one."""

    def forward(self, a, b):
        return torch.triu(torch.matmul(a, b))


def get_inputs():
    return [torch.triu(torch.rand(N, N)) for _ in range(2)]


def get_init_inputs():
    return []
