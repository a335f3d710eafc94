# own/counts_between correct catalogue=58: the upper end belongs to the last bin
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def count(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, at < N, other=-1.0)
    inside = (x >= 0.0) & (x <= 1.0)
    place = tl.minimum((x * 16.0).to(tl.int32), 15)
    tl.atomic_add(out_ptr + place, 1.0, mask=inside)


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.zeros(16, device=x.device, dtype=x.dtype)
        count[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
        return out
