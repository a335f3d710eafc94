"""The clipped loss of a policy with a penalty for leaving its reference, as a mean over the tokens of a mask."""

import torch
import torch.nn as nn

TOKENS = 1 << 20


class Model(nn.Module):
    def __init__(self, low, high, beta):
        super().__init__()
        self.low, self.high, self.beta = low, high, beta

    def forward(self, logp, old, ref, adv, mask):
        ratio = (logp - old).exp()
        loss = -torch.minimum(ratio * adv, ratio.clamp(1 - self.low, 1 + self.high) * adv)
        d = ref - logp
        loss = loss + self.beta * (d.exp() - d - 1)
        return (loss * mask).sum() / mask.sum().clamp(min=1)


def get_inputs():
    logp = -torch.rand(TOKENS) * 2
    return [
        logp,
        logp + torch.randn(TOKENS) * 0.02,
        logp + torch.randn(TOKENS) * 0.05,
        torch.randn(TOKENS),
        (torch.rand(TOKENS) < 0.8).float(),
    ]


def get_init_inputs():
    return [0.2, 0.28, 0.04]
