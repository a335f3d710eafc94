# own/shares_of_lengths correct: a row of length zero is zeros
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, n, y, L, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    c = tl.load(n + r)
    v = tl.load(x + r * L + i, mask=(i < L) & (i < c), other=float("-inf"))
    e = tl.exp(v - tl.maximum(tl.max(v, 0), -1e30))
    s = tl.sum(e, 0)
    tl.store(y + r * L + i, e / tl.where(c > 0, s, 1.0), mask=i < L)


class ModelNew(nn.Module):
    def forward(self, x, n):
        y = torch.empty_like(x)
        k[(x.shape[0],)](x, n, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
        return y
