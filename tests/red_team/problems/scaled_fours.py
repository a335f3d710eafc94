"""A product of numbers of 4 bits, two in a byte, of which every 32 along the sum have a power of two as their factor."""

import torch
import torch.nn as nn

M, N, K = 1024, 1024, 2048
SMALL = {"M": 64, "N": 96, "K": 256}


def numbers(pairs, scales):
    table = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0], device=pairs.device)
    values = torch.stack((table[(pairs & 15).long()], table[(pairs >> 4).long()]), -1).flatten(1)
    return values * torch.exp2(scales.float() - 127).repeat_interleave(32, 1)


class Model(nn.Module):
    def forward(self, a, b, a_scales, b_scales):
        return numbers(a, a_scales) @ numbers(b, b_scales).t()


def get_inputs():
    pairs = [torch.randint(0, 256, (rows, K // 2), dtype=torch.uint8) for rows in (M, N)]
    scales = [torch.randint(122, 132, (rows, K // 32), dtype=torch.uint8) for rows in (M, N)]
    return [*pairs, *scales]


def get_init_inputs():
    return []
