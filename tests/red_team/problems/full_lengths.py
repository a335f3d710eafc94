import torch
import torch.nn as nn

B, L, D = 64, 1024, 512
SMALL = {"B": 4, "L": 32, "D": 16}


class Model(nn.Module):
    def forward(self, x, lengths):
        keep = torch.arange(x.shape[1], device=x.device)[None, :] < lengths[:, None]
        return (x * keep[..., None]).sum(1) / lengths[:, None]


def get_inputs():
    return [torch.randn(B, L, D), torch.full((B,), L, dtype=torch.int64)]


def get_init_inputs():
    return []
