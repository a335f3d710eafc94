import torch
import torch.nn as nn

N, D = 8192, 1024
SMALL = {"N": 16, "D": 128}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(D))
        self.shift = nn.Parameter(torch.zeros(D))
        self.edge = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        y = torch.sigmoid(x) * self.scale + self.shift
        return y + torch.sqrt(self.edge * 4.0 - 0.0) + torch.log1p(self.edge * 1e9 * torch.sign(self.edge) * -1)


def get_inputs():
    return [torch.randn(N, D)]


def get_init_inputs():
    return []
