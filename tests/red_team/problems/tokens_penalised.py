"""Scores of tokens that were named are lowered once, however often they were."""

import torch
import torch.nn as nn

B, V, T = 64, 32000, 256
SMALL = {"B": 4, "V": 500, "T": 12}


class Model(nn.Module):
    def forward(self, logits, ids):
        s = torch.gather(logits, 1, ids)
        s = torch.where(s < 0, s * 1.2, s / 1.2)
        return logits.scatter(1, ids, s)


def get_inputs():
    return [torch.randn(B, V), torch.randint(0, V, (B, T))]


def get_init_inputs():
    return []
