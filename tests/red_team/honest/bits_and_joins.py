# level2/chain_abs_shift_gelu correct: bit casts, interleaved halves, views of a block
import torch
import torch.nn as nn
import triton
import triton.language as tl

@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    x = (x.to(tl.int32, bitcast=True) & 0x7FFFFFFF).to(tl.float32, bitcast=True) - 1.0
    even, odd = tl.split(tl.reshape(x, (BLOCK // 2, 2)))
    even = 0.5 * even * (1.0 + tl.erf(even * 0.7071067811865476))
    odd = 0.5 * odd * (1.0 + tl.erf(odd * 0.7071067811865476))
    tl.store(o_ptr + i, tl.interleave(even, odd), mask=i < n)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel(), 1024),)](x, o, x.numel(), BLOCK=1024)
        return o
