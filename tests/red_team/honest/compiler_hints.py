# level2/chain_bias_leaky_scale correct: hints about alignment, assertions at compile time, a barrier, a while loop, no specialisation
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 5120


@triton.jit(do_not_specialize=["n"])
def kernel(x_ptr, b_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK % 2 == 0)
    start = tl.program_id(0) * BLOCK * 4
    part = 0
    while part < 4:
        i = start + part * BLOCK + tl.arange(0, BLOCK)
        i = tl.max_contiguous(tl.multiple_of(i, 8), 8)
        x = tl.load(x_ptr + i, mask=i < n) + tl.load(b_ptr + i % cols, mask=i < n)
        x = tl.where(x > 0, x, 0.1 * x) * 1.5
        tl.debug_barrier()
        tl.store(o_ptr + i, x, mask=i < n)
        part += 1


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS))

    def forward(self, x):
        o = torch.empty_like(x)
        n, cols = x.numel(), x.shape[1]
        kernel[(triton.cdiv(n, 2048),)](x, self.bias, o, n, cols, BLOCK=512)
        return o
