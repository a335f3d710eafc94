"""Vectors between two directions along the arc; between nearly parallel ones along the line."""

import torch
import torch.nn as nn

N, D = 65536, 64


class Model(nn.Module):
    def forward(self, a, b, t):
        a = a / a.norm(dim=-1, keepdim=True)
        b = b / b.norm(dim=-1, keepdim=True)
        dot = (a * b).sum(-1, keepdim=True)
        b = torch.where(dot < 0, -b, b)
        dot = dot.abs()
        theta = torch.acos(dot.clamp(max=1.0))
        s = torch.sin(theta)
        t = t.unsqueeze(-1)
        far = dot <= 0.9995
        safe = torch.where(far, s, 1.0)
        wa = torch.where(far, torch.sin((1 - t) * theta) / safe, 1 - t)
        wb = torch.where(far, torch.sin(t * theta) / safe, t)
        return wa * a + wb * b


def get_inputs():
    return [torch.randn(N, D), torch.randn(N, D), torch.rand(N)]


def get_init_inputs():
    return []
