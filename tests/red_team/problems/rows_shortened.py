import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x * torch.clamp(1.0 - 1.0 / x.norm(dim=1, keepdim=True), min=0.0)


def get_inputs():
    return [torch.randn(64, 500)]


def get_init_inputs():
    return []
