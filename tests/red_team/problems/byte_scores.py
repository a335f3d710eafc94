"""Scores of rows of small bytes, each with each, as whole numbers."""

import torch
import torch.nn as nn

M, N, K = 1024, 1024, 1024
SMALL = {"M": 32, "N": 48, "K": 64}


class Model(nn.Module):
    """Scores of bytes, as whole numbers."""

    def forward(self, a, b):
        return (a[:, None, :].to(torch.int32) * b[None, :, :].to(torch.int32)).sum(-1)


def get_inputs():
    return [torch.randint(-4, 4, (M // 4, K), dtype=torch.int8), torch.randint(-4, 4, (N // 4, K), dtype=torch.int8)]


def get_init_inputs():
    return []
