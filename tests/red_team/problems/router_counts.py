"""A router of experts: the weights of the best experts of each token, and how many tokens each expert has."""

import torch
import torch.nn as nn

TOKENS, WIDTH, EXPERTS, BEST = 4096, 256, 64, 4
SMALL = {"TOKENS": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)

    def forward(self, x):
        weights, experts = torch.topk(torch.softmax(self.gate(x), dim=-1), BEST, dim=-1)
        return weights / weights.sum(-1, keepdim=True), torch.bincount(experts.flatten(), minlength=EXPERTS)


def get_inputs():
    return [torch.randn(TOKENS, WIDTH)]
