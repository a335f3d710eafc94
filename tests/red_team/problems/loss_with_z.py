"""A cross entropy beside the mean square of its log-sums."""

import torch
import torch.nn as nn

N, V = 4096, 32000
SMALL = {"N": 32, "V": 200}

class Model(nn.Module):
    def forward(self, x, y):
        l = torch.logsumexp(x, -1)
        return (l - x.gather(1, y[:, None])[:, 0]).mean() + 1e-4 * (l * l).mean()


def get_inputs():
    return [torch.randn(N, V), torch.randint(0, V, (N,))]


def get_init_inputs():
    return []
