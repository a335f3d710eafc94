import torch
import torch.nn as nn
import torch.nn.functional as F
N, M = 4096, 2048
SMALL = {'N': 24, 'M': 80}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        w = torch.zeros(M); w[0] = 1
        self.w = nn.Parameter(w)
    def forward(self, x):
        return torch.relu(x * self.w)
def get_inputs():
    return [torch.randn(N, M)]
def get_init_inputs():
    return []
