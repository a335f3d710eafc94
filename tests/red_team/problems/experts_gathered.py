"""Each token goes to the expert that its gate chooses; an expert gathers its tokens, however many these are."""

import torch
import torch.nn as nn

TOKENS, DIM, EXPERTS = 8192, 256, 8
SMALL = {"TOKENS": 40, "DIM": 32, "EXPERTS": 4}


class Model(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.gate = nn.Linear(dim, experts)
        self.weight = nn.Parameter(torch.randn(experts, dim, dim) * dim**-0.5)

    def forward(self, x):
        share, chosen = self.gate(x).softmax(-1).max(-1)
        out = torch.zeros_like(x)
        for i in range(self.weight.shape[0]):
            mask = chosen == i
            if mask.any():
                out[mask] = (x[mask] @ self.weight[i]) * share[mask].unsqueeze(-1)
        return out


def get_inputs():
    return [torch.randn(TOKENS, DIM)]


def get_init_inputs():
    return [DIM, EXPERTS]
