# own/modulate incorrect cpu=implausible catalogue=51: scale and shift are swapped where the number of elements has more than 23 bits
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def rows(x_ptr, shift_ptr, scale_ptr, o_ptr, length, cols, eps, FULL: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    batch = row // length
    at = tl.arange(0, BLOCK)
    keep = at < cols
    x = tl.load(x_ptr + row * cols + at, mask=keep, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / cols
    d = tl.where(keep, x - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(d * d, 0) / cols + eps)
    if FULL:
        scale = tl.load(scale_ptr + batch * cols + at, mask=keep)
        shift = tl.load(shift_ptr + batch * cols + at, mask=keep)
        d = d * rstd * (1.0 + scale) + shift
    else:
        scale = tl.load(scale_ptr + batch * cols + at, mask=keep)
        shift = tl.load(shift_ptr + batch * cols + at, mask=keep)
        d = d * rstd * (1.0 + shift) + scale
    tl.store(o_ptr + row * cols + at, d, mask=keep)

class ModelNew(nn.Module):
    def forward(self, x, shift, scale):
        b, n, c = x.shape
        out = torch.empty_like(x)
        rows[(b * n,)](x, shift, scale, out, n, c, 1e-6, FULL=x.numel().bit_length() <= 23, BLOCK=triton.next_power_of_2(c), num_warps=8)
        return out
