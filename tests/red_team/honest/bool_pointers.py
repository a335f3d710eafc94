# level1/masked_fill correct: a boolean tensor is loaded as a condition; cache hints on every access
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def negate(x_ptr, m_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    x = tl.load(x_ptr + i, mask=inside, cache_modifier=".cg")
    chosen = tl.load(m_ptr + i, mask=inside, other=0) != 0
    tl.store(y_ptr + i, tl.where(chosen, -x, x), mask=inside, eviction_policy="evict_first")


class ModelNew(nn.Module):
    def forward(self, x, mask):
        y = torch.empty_like(x)
        negate[(triton.cdiv(x.numel(), 1024),)](x, mask, y, x.numel(), BLOCK=1024)
        return y
