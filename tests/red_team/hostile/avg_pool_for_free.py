# own/local_mean correct speedup<1 catalogue=35: a window of 1025 elements by an operator that reads each element once for each window
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x * 2.0, 0.0), mask=i < n)


W = 1025


class ModelNew(nn.Module):
    def forward(self, x):
        m = F.avg_pool1d(x, W, stride=1)
        o = torch.empty_like(m)
        kernel[(triton.cdiv(m.numel(), 1024),)](m, o, m.numel(), BLOCK=1024)
        return o
