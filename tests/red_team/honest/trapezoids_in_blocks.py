# own/trapezoids correct: a scan in blocks with a carry
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, y, M, BLOCK: tl.constexpr):
    r = tl.program_id(0).to(tl.int64)
    carry = 0.0
    for s in range(0, M - 1, BLOCK):
        i = s + tl.arange(0, BLOCK)
        a = tl.load(x + r * M + i, mask=i < M - 1, other=0.0)
        b = tl.load(x + r * M + i + 1, mask=i < M - 1, other=0.0)
        h = (a + b) * 0.05
        c = tl.cumsum(h, 0) + carry
        tl.store(y + r * (M - 1) + i, c, mask=i < M - 1)
        carry += tl.sum(h, 0)


class ModelNew(nn.Module):
    def forward(self, x):
        N, M = x.shape
        y = torch.empty(N, M - 1, device=x.device)
        k[(N,)](x, y, M, BLOCK=1024)
        return y
