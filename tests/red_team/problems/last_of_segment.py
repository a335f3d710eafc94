import torch
import torch.nn as nn

B, N, S = 256, 4096, 64
SMALL = {"B": 8, "N": 256, "S": 16}


class Model(nn.Module):
    def forward(self, x, seg):
        place = torch.arange(x.shape[1], device=x.device).expand_as(seg)
        last = torch.zeros(x.shape[0], S, dtype=torch.int64, device=x.device).scatter_reduce(1, seg, place, "amax")
        return x.gather(1, last)


def get_inputs():
    return [torch.randn(B, N), torch.arange(N).remainder(S).expand(B, N).contiguous()[:, torch.randperm(N)]]


def get_init_inputs():
    return []
