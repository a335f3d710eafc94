# own/dropped_and_added correct: a grid-stride loop over all elements
import torch
import torch.nn as nn
import triton
import triton.language as tl

COLS = 2049


@triton.jit
def fused(x_ptr, b_ptr, r_ptr, m_ptr, o_ptr, n, cols, BLOCK: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + at % cols, mask=inside, other=0.0).to(tl.float32)
        r = tl.load(r_ptr + at, mask=inside, other=0.0).to(tl.float32)
        keep = tl.load(m_ptr + at, mask=inside, other=0).to(tl.float32)
        tl.store(o_ptr + at, ((x + b) * keep * (1 / 0.9) + r).to(tl.bfloat16), mask=inside)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(COLS, dtype=torch.bfloat16))

    def forward(self, x, before, mask):
        o = torch.empty_like(x)
        n = x.numel()
        fused[(min(1056, triton.cdiv(n, 1024)),)](x, self.bias, before, mask, o, n, x.shape[1], BLOCK=1024)
        return o
