# relu incorrect: spoils its output by atomics in a helper whose name looks like one of the interpreter's own
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def interpreter_by_turns(o_ptr, i, n):
    tl.atomic_add(o_ptr + i, 1.0, mask=i < n)


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(o_ptr + i, tl.maximum(x, 0.0), mask=i < n)
    interpreter_by_turns(o_ptr, i, n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
