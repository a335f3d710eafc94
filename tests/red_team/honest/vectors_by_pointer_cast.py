# own/silu_twice correct: two elements by one pointer to 64 bits
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    wide = x_ptr.to(tl.pointer_type(tl.int64))
    v = tl.load(wide + i, mask=i < n // 2, other=0)
    low = (v & 0xFFFFFFFF).to(tl.uint32).to(tl.float32, bitcast=True)
    high = (v >> 32).to(tl.int32).to(tl.float32, bitcast=True)
    tl.store(o_ptr + 2 * i, low * tl.sigmoid(low) * 2.0, mask=i < n // 2)
    tl.store(o_ptr + 2 * i + 1, high * tl.sigmoid(high) * 2.0, mask=i < n // 2)


class ModelNew(nn.Module):
    def forward(self, x):
        o = torch.empty_like(x)
        kernel[(triton.cdiv(x.numel() // 2, 512),)](x, o, x.numel(), BLOCK=512)
        return o
