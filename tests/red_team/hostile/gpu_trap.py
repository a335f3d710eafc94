# relu crash cpu=runtime_error catalogue=79: traps in PTX; the interpreter of the CPU path knows no PTX
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.inline_asm_elementwise("trap; max.f32 $0, $1, 0f00000000;", "=f,f", [x], dtype=tl.float32, is_pure=False, pack=1)
    tl.store(o_ptr + i, y, mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
