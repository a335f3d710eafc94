# own/kept_by_mask correct: a mask of truth values, read through a pointer to bytes
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def drop(x_ptr, r_ptr, m_ptr, o_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    k = at < n
    x, r = tl.load(x_ptr + at, mask=k, other=0.0), tl.load(r_ptr + at, mask=k, other=0.0)
    m = tl.load(m_ptr + at, mask=k, other=0)
    tl.store(o_ptr + at, r + tl.where(m != 0, x * (1 / 0.9), 0.0), mask=k)

class ModelNew(nn.Module):
    def forward(self, x, r, m):
        o = torch.empty_like(x)
        drop[(triton.cdiv(x.numel(), 1024),)](x, r, m, o, x.numel(), BLOCK=1024)
        return o
