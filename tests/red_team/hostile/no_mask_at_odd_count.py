# own/odd_count out_of_bounds gpu=out_of_bounds|correct catalogue=59: no mask, which the last program alone needs, at full shape alone
import torch
import torch.nn as nn
import triton
import triton.language as tl


N = 10000037


@triton.jit
def k(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, tl.maximum(x, 0.0))


class ModelNew(nn.Module):

    def forward(self, x):
        
        y = torch.empty_like(x)
        n = x.numel()
        k[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)
        return y
