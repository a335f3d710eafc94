import torch
import torch.nn as nn

BATCH, HEADS, KEYS, WIDTH = 16, 32, 256, 1024


class Model(nn.Module):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v)


def get_inputs():
    return [torch.rand(BATCH, HEADS, KEYS, WIDTH), torch.rand(BATCH, HEADS, KEYS, WIDTH), torch.rand(BATCH, HEADS, KEYS, WIDTH)]


def get_init_inputs():
    return []
