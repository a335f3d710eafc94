"""Channels scaled by a gate computed from their means."""
import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 64
CHANNELS = 256
HIDDEN = 64
SIZE = 4096
SMALL = {"BATCH": 3, "CHANNELS": 12, "HIDDEN": 6, "SIZE": 20}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Linear(CHANNELS, HIDDEN)
        self.up = nn.Linear(HIDDEN, CHANNELS)

    def forward(self, x):
        gate = F.relu(self.down(x.mean(dim=2)))
        gate = torch.sigmoid(self.up(gate))
        return x * gate.unsqueeze(2)

def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIZE) + 4.0 * torch.randn(BATCH, CHANNELS, 1)]

def get_init_inputs():
    return []
