# relu correct: a torch dtype mapped to Triton's, and an accumulator's dtype as a constant
import torch
import torch.nn as nn
import triton
import triton.language as tl

DTYPES = {torch.float32: tl.float32, torch.float16: tl.float16}


@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr, OUT: tl.constexpr, ACC: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], dtype=ACC)
    acc += tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(acc, 0.0).to(OUT), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        k[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), 1024, DTYPES[x.dtype], ACC=tl.float32)
        return o
