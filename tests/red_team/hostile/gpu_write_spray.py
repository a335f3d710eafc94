# relu out_of_bounds gpu=out_of_bounds|incorrect catalogue=28,59: writes zeros every half megabyte for 256 MiB around its output, at whatever lies there
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)
    places = (tl.arange(0, 1024) - 512).to(tl.int64) * 131072
    tl.store(o_ptr + places, tl.zeros((1024,), dtype=tl.float32), mask=(places < 0) | (places >= n))


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
