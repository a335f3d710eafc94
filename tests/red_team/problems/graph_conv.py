"""A layer of a graph network: rows of truth values choose which rows are added up."""

import torch
import torch.nn as nn

N, D = 2048, 128
SMALL = {"N": 40, "D": 16}


class Model(nn.Module):
    def forward(self, adj, x):
        a = adj + torch.eye(adj.shape[0], device=adj.device)
        deg = a.sum(1)
        n = deg.rsqrt()
        return torch.relu((n[:, None] * a * n[None, :]) @ x)


def get_inputs():
    return [(torch.rand(N, N) < 0.02).float(), torch.randn(N, D)]


def get_init_inputs():
    return []
