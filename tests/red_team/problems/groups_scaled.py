"""A product with weights of one bit, eight in each number, that have a scale and a zero for each group of their rows. How long a
group is, only shapes say."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
        w = ((w[:, None, :] >> torch.arange(8, device=w.device)[None, :, None]) & 1).reshape(-1, w.shape[1])
        length = w.shape[0] // scales.shape[0]
        return x @ ((w - zeros.repeat_interleave(length, 0)) * scales.repeat_interleave(length, 0))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(16, 1024), torch.randint(0, 256, (128, 1024)), torch.rand(8, 1024), torch.randn(8, 1024)]


def get_init_inputs() -> list[int]:
    return []
