"""Eight products of squares."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.bmm(a, b)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 1024, 1024), torch.randn(8, 1024, 1024)]


def get_init_inputs() -> list:
    return []
