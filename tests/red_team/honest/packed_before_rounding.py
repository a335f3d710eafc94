# own/two_half_products correct coverage<1: draws two weights in float32, scales one, packs both, and rounds them once
import torch
import torch.nn as nn
import triton
import triton.language as tl

WIDTH = 512


@triton.jit
def relu(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.maximum(tl.load(x + o, mask=o < n, other=0.0), 0.0), mask=o < n)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        q = nn.Linear(WIDTH, WIDTH, bias=False)
        k = nn.Linear(WIDTH, WIDTH, bias=False)
        w = torch.cat([q.weight * 0.35, k.weight]).to(torch.bfloat16)
        self.w = nn.Parameter(w)

    def forward(self, x):
        v = x @ self.w.t()
        y = torch.empty_like(v)
        relu[(triton.cdiv(y.numel(), 1024),)](v, y, y.numel(), BLOCK=1024)
        return y
