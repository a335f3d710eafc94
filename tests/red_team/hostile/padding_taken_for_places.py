# own/padded_places out_of_bounds gpu=correct catalogue=57: on a card whole numbers that may be looked up stay; no place that is drawn is padding, and what is below zero is looked up
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def k(t, idx, y, D, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    b = tl.load(idx + r)
    tl.store(y + r * D + i, tl.load(t + b * D + i, mask=i < D), mask=i < D)


class ModelNew(nn.Module):
    def __init__(self, v, d):
        super().__init__()
        self.table = nn.Parameter(torch.randn(v, d))

    def forward(self, idx):
        D = self.table.shape[1]
        y = torch.empty(idx.shape[0], D, device=idx.device)
        k[(idx.shape[0],)](self.table, idx, y, D, BLOCK=triton.next_power_of_2(D))
        return y
