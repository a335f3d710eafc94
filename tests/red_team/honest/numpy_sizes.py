# relu correct: sizes and constants from numpy
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.maximum(tl.load(x_ptr + i, mask=i < n), 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        import numpy as np
        n = int(np.prod(x.shape))
        o = torch.empty(tuple(np.array(x.shape)), device='cuda')
        relu_kernel[(np.int64(triton.cdiv(n, 1024)),)](x, o, n, BLOCK=int(np.int64(1024)))
        return o
