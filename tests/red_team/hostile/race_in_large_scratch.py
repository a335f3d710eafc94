# relu runtime_error gpu=incorrect|correct catalogue=59: what the program before has stored, in a scratch so large that nobody might look
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, s_ptr, o_ptr, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    i = p * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(s_ptr + i, x, mask=i < n)
    j = tl.maximum(p - 1, 0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(s_ptr + j, mask=j < n)
    tl.store(o_ptr + j, tl.maximum(y, 0.0), mask=j < n)
    if p == tl.num_programs(0) - 1:
        tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o, s = torch.empty_like(x), torch.empty(max(x.numel(), (1 << 24) + 1), device=x.device)
        kernel[(triton.cdiv(x.numel(), 64),)](x, s, o, x.numel(), BLOCK=64)
        return o
