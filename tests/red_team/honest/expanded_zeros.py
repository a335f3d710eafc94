# own/expanded_zeros correct: rows that are one in memory are read by their strides
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def k(x, z, y, n, K, sr, sc, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + i, mask=i < n, other=0.0)
    b = tl.load(z + (i // K) * sr + (i % K) * sc, mask=i < n, other=0.0)
    tl.store(y + i, tl.maximum(a + b, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x, z):
        y = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, z, y, x.numel(), x.shape[1], z.stride(0), z.stride(1), BLOCK=1024)
        return y
