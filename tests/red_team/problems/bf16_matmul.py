import torch
import torch.nn as nn
import torch.nn.functional as F

M, K, N = 1024, 1024, 1024
SMALL = {"M": 64, "K": 96, "N": 64}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(K, N, dtype=torch.bfloat16)

    def forward(self, x):
        return F.gelu(self.fc(x))


def get_inputs():
    return [torch.randn(M, K).bfloat16()]


def get_init_inputs():
    return []
