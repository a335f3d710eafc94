import torch
import torch.nn as nn
import torch.nn.functional as F

B, N, W = 64, 262144, 1025
SMALL = {"B": 3, "N": 2000, "W": 17}


class Model(nn.Module):
    def forward(self, x):
        c = F.pad(torch.cumsum(x.double(), 1), (1, 0))
        m = (c[:, W:] - c[:, :-W]) / W
        return torch.relu(m.float() * 2.0)


def get_inputs():
    return [torch.rand(B, N)]


def get_init_inputs():
    return []
