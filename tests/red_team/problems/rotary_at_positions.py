import torch
import torch.nn as nn


TOKENS, HEADS, DIM, MOST = 16384, 16, 128, 65536
SMALL = {"TOKENS": 40, "HEADS": 4, "DIM": 32, "MOST": 65536}

class Model(nn.Module):
    """Rotates halves of each head by an angle of the token's position."""

    def forward(self, x, positions):
        half = x.shape[-1] // 2
        rates = 10000.0 ** (-torch.arange(half, device=x.device, dtype=torch.float32) / half)
        angles = positions.float()[:, None, None] * rates
        a, b = x.float().chunk(2, -1)
        cos, sin = torch.cos(angles), torch.sin(angles)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def get_inputs():
    return [torch.randn(TOKENS, HEADS, DIM, dtype=torch.bfloat16), torch.randint(0, 4096, (TOKENS,))]


def get_init_inputs():
    return []
