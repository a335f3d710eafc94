"""Pictures whose histogram is made even; one of a single shade stays as it is."""

import torch
import torch.nn as nn

B, P, BINS = 64, 16384, 256


class Model(nn.Module):
    def forward(self, x):
        ones = torch.ones(x.shape, device=x.device)
        hist = torch.zeros(x.shape[0], BINS, device=x.device).scatter_add(1, x.long(), ones)
        cdf = hist.cumsum(1)
        least = torch.where(cdf > 0, cdf, float("inf")).amin(1, keepdim=True)
        rest = x.shape[1] - least
        table = torch.round((cdf - least) / rest.clamp(min=1.0) * 255.0).clamp(0, 255)
        table = torch.where(rest > 0, table, torch.arange(BINS, device=x.device).float())
        return table.gather(1, x.long()).to(torch.uint8)


def get_inputs():
    return [torch.randint(20, 200, (B, P), dtype=torch.uint8)]


def get_init_inputs():
    return []
