# own/shares_of_bins correct coverage>0.7: blocks of 2,048 numbers are counted into 16 bins where results are compared, and into 64 at full shape
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count(x_ptr, c_ptr, n, low, high, bins, BINS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=float("inf"))
    inside = (i < n) & (x >= low) & (x <= high)
    place = tl.floor((x - low) / (high - low) * bins)
    place = tl.where(inside, tl.minimum(place, bins - 1.0), 0.0).to(tl.int32)
    h = tl.histogram(place, BINS, mask=inside)
    b = tl.arange(0, BINS)
    tl.atomic_add(c_ptr + row * bins + b, h.to(tl.float32), mask=(b < bins) & (h > 0))


@triton.jit
def share(c_ptr, bins, BINS: tl.constexpr):
    row = tl.program_id(0)
    b = tl.arange(0, BINS)
    c = tl.load(c_ptr + row * bins + b, mask=b < bins, other=0.0)
    tl.store(c_ptr + row * bins + b, c / tl.maximum(tl.sum(c, 0), 1.0), mask=b < bins)


class ModelNew(nn.Module):
    def __init__(self, bins, low=-2.0, high=2.0):
        super().__init__()
        self.bins, self.low, self.high = bins, low, high

    def forward(self, x):
        B, n = x.shape
        c = torch.zeros(B, self.bins, device=x.device, dtype=x.dtype)
        P = triton.next_power_of_2(self.bins)
        count[(B, triton.cdiv(n, 2048))](x, c, n, self.low, self.high, self.bins, BINS=P, BLOCK=2048)
        share[(B,)](c, self.bins, BINS=P)
        return c
