"""Attention over 1,024 keys of heads that have 64 channels and lie side by side."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        return nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).contiguous()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 1024, 16, 64), torch.randn(2, 1024, 16, 64), torch.randn(2, 1024, 16, 64)]


def get_init_inputs() -> list:
    return []
