# relu runtime_error gpu=correct|incorrect catalogue=59: hands a block on by one lane of a block of atomics, which waits for no other lane
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, s_ptr, f_ptr, o_ptr, n, BLOCK: tl.constexpr):
    block, lane = tl.program_id(0), tl.arange(0, 32)
    i = block * BLOCK + tl.arange(0, BLOCK)
    if tl.program_id(1) == 0:
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(s_ptr + i, tl.maximum(x, 0.0), mask=i < n)
        tl.atomic_add(f_ptr + block * 32 + lane, 1, mask=lane == 0)
    else:
        while tl.atomic_add(f_ptr + block * 32, 0) == 0:
            pass
        tl.store(o_ptr + i, tl.load(s_ptr + i, mask=i < n), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o, s, blocks = torch.empty_like(x), torch.empty_like(x), triton.cdiv(x.numel(), 1024)
        f = torch.zeros(blocks, 32, dtype=torch.int32, device=x.device)
        kernel[(blocks, 2)](x, s, f, o, x.numel(), BLOCK=1024)
        return o
