"""Scores of the experts that are named for each token, all of which differ, and a half of one for the others."""

import torch
import torch.nn as nn

T, E, K = 4096, 128, 8
SMALL = {"T": 16, "E": 64, "K": 4}


class Model(nn.Module):
    def forward(self, scores, ids):
        mask = torch.zeros_like(scores).scatter(-1, ids, 1.0)
        return scores * mask + 0.5 * (1.0 - mask)


def get_inputs():
    scores = torch.randn(T, E)
    return [scores, torch.rand(T, E).topk(K, dim=-1).indices]


def get_init_inputs():
    return []
