import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 256
IN = 512
OUT = 384


class Model(nn.Module):
    """A linear layer with weight normalisation, w = g * v / |v|, followed by a ReLU."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.v = nn.Parameter(torch.randn(out_features, in_features) * 0.05)
        self.g = nn.Parameter(self.v.norm(dim=1, keepdim=True).detach().clone())
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x):
        w = self.g * self.v / self.v.norm(dim=1, keepdim=True)
        return torch.relu(F.linear(x, w, self.bias))


def get_inputs():
    return [torch.randn(BATCH, IN)]


def get_init_inputs():
    return [IN, OUT]
